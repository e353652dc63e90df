import { closedForMs, type Circuit, type PushBack } from './circuit.js';

/** As people see it: half open is what lets some through, to try or to recover. */
export type CircuitState = 'closed' | 'open' | 'half_open';

const reasons: Readonly<Record<PushBack, string>> = {
  rate_limited: 'its service says that it gets too many requests',
  quota_exhausted: 'the account at its service has no quota left',
  unauthorized: 'its service refuses the API key (401)',
  forbidden: 'its service forbids what the API key asks for (403)',
  unavailable: 'its service is not available',
};

export function circuitState(circuit: Circuit, nowMs: number): CircuitState {
  if (circuit.kind === 'closed') return 'closed';
  return closedForMs(circuit, nowMs) > 0 ? 'open' : 'half_open';
}

/** its service is not available; a few tasks try whether it answers again */
export function circuitText(circuit: Circuit & { kind: 'open' }, nowMs: number): string {
  const isProbed = closedForMs(circuit, nowMs) === 0;
  const probes = isProbed ? '; a few tasks try whether it answers again' : '';
  return `${reasons[circuit.reason]}${probes}`;
}
