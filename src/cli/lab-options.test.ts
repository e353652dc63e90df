import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { runFromSource } from './from-source.js';
import { withLabOptions } from './lab-options.js';

describe('R-LA1: sluice lab', () => {
  it('runs the published case once, in real time, unless told otherwise', () => {
    expect(read()).toEqual({
      timeScale: 1,
      seed: 1,
      tasks: 1_000,
      only: [],
      embedded: false,
      write: false,
    });
  });

  it('takes several seeds, and some of the scenarios', () => {
    expect(read('--seeds', '3..6').seeds).toEqual([3, 4, 5, 6]);
    expect(read('--only', 'batch', '--only', 'limited').only).toEqual(['batch', 'limited']);
    expect(read('--time-scale', '20').timeScale).toBe(20);
  });

  it.each([
    [['--time-scale', '7'], '60 must be a multiple of it'],
    [['--time-scale', '0'], 'whole number from 1 to 60'],
    [['--only', 'airflow'], 'There are batch, sluice, limited, spiral, outage.'],
    [['--seeds', '5..1'], 'like 1..5'],
    [['--seeds', '1'], 'like 1..5'],
    [['--seeds', '1..5', '--seed', '3'], 'cannot be used with option'],
    [['--tasks', '3'], 'whole number from 20'],
  ])('refuses %j', (args, sentence) => {
    expect(() => read(...args)).toThrow(sentence);
  });

  it('says where to get what the package leaves out', async () => {
    const running = runFromSource('lab', 'lab/case-study/main.ts', [], '/no/checkout');
    await expect(running).rejects.toThrow(
      /^"sluice lab" runs from a checkout of Sluice's source.*npm ci && npm run build/,
    );
  });
});

function read(...args: string[]): Readonly<Record<string, unknown>> {
  const command = withLabOptions(new Command('lab'))
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  return command.parse(args, { from: 'user' }).opts();
}
