/** Why work waited that was ready. `pushed_back`: the service answered 429, and the circuit opened for it. */
export type ThrottleReason =
  | 'paused'
  | 'pushed_back'
  | 'circuit_open'
  | 'circuit_half_open'
  | 'max_concurrency'
  | 'rate_limit';
