import { openEngine } from '../../src/engine/open-engine.js';

/** Serves the database named as its first argument until it is killed. */
const [, , url] = process.argv;
if (url === undefined) throw new Error('the URL of a database is needed');
await openEngine({
  database: { kind: 'postgres', url },
  settings: { servingLeaseMs: 1_500, servingRenewMs: 300 },
});
process.send?.('serving');
