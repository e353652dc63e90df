/** What a process of the crew is asked to do. */
export interface Job {
  readonly kind: 'run' | 'shrink';
  readonly seed: number;
  readonly steps: number;
  /** Steps that are left out. */
  readonly without: readonly number[];
  /** The whole trace is sent back, not only its end. */
  readonly trace: boolean;
  /** See `sabotages`; null: none. */
  readonly sabotage: string | null;
}

export interface Failure {
  /** In the drain: all steps were taken, and then something did not come right. */
  readonly step: number | 'drain';
  /** Begins with the rule that was broken, and a colon. */
  readonly message: string;
}

export interface Outcome {
  readonly seed: number;
  readonly steps: number;
  readonly without: readonly number[];
  readonly tasks: number;
  readonly virtualMs: number;
  /** How often tasks went from one state to another. */
  readonly moves: Readonly<Record<string, number>>;
  readonly trace: readonly string[];
  /** Of the whole trace: the same seed gives the same one. */
  readonly digest: string;
  readonly failure: Failure | null;
}

export function ruleOf({ message }: Failure): string {
  return message.split(':', 1)[0] ?? message;
}
