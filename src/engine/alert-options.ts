/** How a server evaluates alerts. */
export interface AlertOptions {
  readonly intervalMs: number;
  /** Whether there is a webhook that is told. */
  readonly tells: boolean;
}
