import { describe, expect, it } from 'vitest';
import * as deadLetters from './dead-letters-schema.js';
import * as queues from './queues-schema.js';
import * as tasks from './tasks-schema.js';
import * as workers from './workers-schema.js';
import { compileCheck } from './compile-check.js';

const schemas = Object.entries({ ...tasks, ...queues, ...deadLetters, ...workers });

describe('compileCheck', () => {
  const checkQueue = compileCheck(queues.queueChangeSchema);
  const checkReports = compileCheck(workers.oneOrManyReportsSchema);

  it.each([
    [{ colour: 'red' }, '/colour', 'is not a known field'],
    [{ max_ready: '5' }, '/max_ready', 'must be a whole number'],
    [{ max_concurrency: 0 }, '/max_concurrency', 'must be >= 1'],
    [{ limits: [{ use: 'a', k: 1 }] }, '/limits/0/k', 'is not a known field'],
    [{ limits: [{ unit: 'a', rate: 1 }] }, '/limits/0/per_seconds', 'is needed'],
    [{ limits: [{ use: 'a b' }] }, '/limits/0/use', 'must be 1 to 200 of A-Z a-z 0-9 . _ : / -'],
    [
      { ageing: { low_to_high: 1 } },
      '/ageing/low_to_high',
      'is not a known field: did you mean "low_to_high_seconds"?',
    ],
    [
      { limits: [{ unit: 'a', rate: 1, per_seconds: 60, brust: 1 }] },
      '/limits/0/brust',
      'is not a known field: did you mean "burst"?',
    ],
    [{ 'a/b': 1 }, '/a~1b', 'is not a known field'],
  ])('%j: %s %s', (settings, path, message) => {
    expect(checkQueue(settings)).toEqual([{ path, message }]);
  });

  it('tells of the alternative that was meant', () => {
    const errors = checkReports({ results: [{ status: 'completed' }, 1, 2, 3, 4, 5, 6, 7, 8, 9] });
    expect(errors?.map(({ path }) => path).slice(0, 3)).toEqual([
      '/results/0/task_id',
      '/results/0/lease',
      '/results/1',
    ]);
  });

  it('tells of the alternative that was meant, for each of many, and however many are wrong', () => {
    const mixed = [
      { unit: 'a', rate: 0.5, per_seconds: 1 },
      { use: 'a', k: 1 },
      { rate: 1, unit: 'b' },
    ];
    expect(checkQueue({ limits: mixed })?.map(({ path }) => path)).toEqual([
      '/limits/0/rate',
      '/limits/1/k',
      '/limits/2/per_seconds',
    ]);
    const errors = checkReports({ results: Array(1_000).fill({ colour: 'red' }) }) ?? [];
    expect(errors).toHaveLength(20);
    expect(errors.every(({ path }) => path.startsWith('/results/'))).toBe(true);
  });

  it('puts the path of the part in front', () => {
    expect(compileCheck(tasks.taskDraftSchema)({}, '/tasks/3')).toEqual([
      { path: '/tasks/3/task_type', message: 'is needed' },
    ]);
  });

  it('finds the examples in the docs valid', () => {
    const examples = schemas.flatMap(([name, schema]) => {
      if (!('type' in schema) && !('anyOf' in schema)) return [];
      const { examples: given = [] } = schema as { examples?: readonly unknown[] };
      return given.map((example) => ({ name, errors: compileCheck(schema)(example) }));
    });
    expect(examples.length).toBeGreaterThan(12);
    expect(
      examples.filter(({ errors, name }) => errors !== null && name !== 'taskEventSchema'),
    ).toEqual([]);
  });
});
