import { expect, inject, it } from 'vitest';
import { large } from '../../lab/dashboard/large.js';
import { Lab } from '../../lab/shared/lab.js';

/** What it measures is for `npm run dashboard`; here only whether it measures all. */
it('R-LA3: the lab of the dashboard asks what each page asks, paints, scrolls and opens ten tabs', async () => {
  if (inject('distIsStale')) throw new Error('dist is older than src: npm run build');
  const numbers = { seconds: 1, rate: 100, rounds: 1, 'round-seconds': 1 };
  await using lab = await Lab.open({ quick: true, long: false, numbers });
  const rows = await large.run(lab);
  const asked = rows.map(({ what }) => what).join('\n');
  for (const path of ['queue/stats', 'queues?', 'queues/queue-1', 'series?', 'tasks?', 'explain']) {
    expect(asked).toContain(path);
  }
  for (const path of ['workers', 'dlq/analysis', 'alerts', 'keys', 'audit']) {
    expect(asked).toContain(path);
  }
  expect(asked).toMatch(/first paint[^]*frames a second[^]*10 tabs cost/);
});
