import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import prettier from 'prettier';
import { describeMachine } from '../shared/results.js';
import { ms, type Row } from '../shared/scenario.js';
import type { Tally } from './tally.js';

const page = join(import.meta.dirname, '../../docs/hostile-input-measured.md');

const aboutNames = `Names are the other way to fill a memory: in each of five rounds so many queues, task types, users,
idempotency keys and error codes that nobody used before, each for one task that ends, and workers that
leave. What is remembered of them for a while has limits (10,000 idle queues and lanes, 100,000 names),
which the first rounds reach.`;

export async function writePage(
  command: string,
  rows: readonly Row[],
  tally: Tally,
  hasNames: boolean,
): Promise<void> {
  const text = [
    '# Hostile input, measured',
    '<!-- Written by npm run fuzz -- --write -->',
    `Requests that are generated from the OpenAPI document, from a seed: for every route what it asks for,
nearly that, and what nothing asks for (NUL and halves of surrogate pairs, numbers beyond all ranges, a
hundred thousand brackets, broken UTF-8, SQL, made-up cursors, odd headers and methods). They go over sockets to
\`sluice serve\` as a process, with Postgres and Redis. Every answer is held against the document, every
refusal against the schema of problems and the catalogue of errors, and is searched for what is inside:
stacks, SQL, names of tables, paths. Afterwards a task is submitted, run and completed. What sockets may do
is in \`test/http/sockets.test.ts\`, what becomes of odd values in \`test/http/hostile.test.ts\`.`,
    `What is kept in memory is what the server has in use after a collection: its heap and the buffers beside it,
without what only waits to be collected. V8 lets that grow on a large machine, as the most that the process
took shows; \`NODE_OPTIONS=--max-old-space-size=…\` says how far.`,
    ...(hasNames ? [aboutNames] : []),
    `Again: \`${command}\`.`,
    table(['what', 'wanted', 'measured', ''], rows.map(cellsOf)),
    `Measured ${new Date().toISOString().slice(0, 10)} on ${describeMachine()}.`,
    '## By route',
    table(['route', 'requests', 'answers', 'slowest'], routeRows(tally)),
  ].join('\n\n');
  writeFileSync(page, await prettier.format(text, { parser: 'markdown', printWidth: 100 }));
}

function cellsOf({ what, wanted, measured, verdict }: Row): string[] {
  return [what, wanted, measured, verdict === 'noted' ? '' : verdict];
}

function routeRows({ routes }: Tally): string[][] {
  return [...routes].map(([route, { statuses, slowestMs }]) => {
    const sorted = [...statuses].sort(([a], [b]) => a - b);
    const requests = sorted.reduce((sum, [, times]) => sum + times, 0);
    const answers = sorted.map(([status, times]) => `${status} × ${times}`).join(', ');
    return [`\`${route}\``, String(requests), answers, ms(slowestMs)];
  });
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
