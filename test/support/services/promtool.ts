import { runProgram, type Ran } from './run-program.js';

/** What `promtool check metrics` says against a page of metrics; empty: nothing. */
export function lintMetrics(text: string): string {
  return runPromtool(['check', 'metrics'], text).output;
}

/** Whether it passed, and what it said. */
export function runPromtool(args: readonly string[], input = ''): Ran {
  return runProgram({ program: 'promtool', debianPackage: 'prometheus' }, args, { input });
}
