import { expect, it } from 'vitest';
import { runCli } from '../support/cli.js';

it.each([
  ['growth', /^sluice bench growth \[--only NAME\].*\[--soak-minutes N\]/m, /^ {2}backlog /m],
  ['accuracy', /^sluice bench accuracy \[--only NAME\]/m, /^ {2}tokens /m],
])(
  'R-LA3: "sluice bench %s" runs from the source, with its own flags',
  async (kind, usage, scenario) => {
    const { code, stdout } = await runCli(['bench', kind, '--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(usage);
    expect(stdout).toMatch(scenario);
  },
);

it('R-LA3: it ends as what it runs ended', async () => {
  const { code, stderr } = await runCli(['bench', 'growth', '--only', 'weather']);
  expect(code).toBe(2);
  expect(stderr).toContain('There is no weather; there are backlog');
});
