import { seededRandom } from '../shared/measure.js';

export type EngineKind = 'postgres' | 'replicas' | 'embedded';

export const faultKinds = [
  'kill server',
  'freeze server',
  'kill worker',
  'freeze worker',
  'cut worker',
  'mislead worker',
  'kill redis',
  'flush redis',
  'freeze redis',
  'hang redis',
  'erase redis',
  'cut redis',
  'kill postgres',
  'lock postgres',
  'cut postgres',
] as const;

export type FaultKind = (typeof faultKinds)[number];

export interface Fault {
  readonly kind: FaultKind;
  /** Whom it meets: `server-0`, `worker-3`, `redis`, `postgres`. A cut meets a server's or worker's line. */
  readonly target: string;
  /** Since the begin. */
  readonly atMs: number;
  /** Until it is started, continued or mended. */
  readonly lastsMs: number;
}

export interface SchedulePlan {
  readonly engine: EngineKind;
  readonly seed: number;
  readonly faults: number;
  readonly durationMs: number;
  readonly leaseMs: number;
}

export const serverNames: Readonly<Record<EngineKind, readonly string[]>> = {
  postgres: ['server-0', 'server-1'],
  replicas: ['server-0', 'server-1', 'server-2'],
  embedded: ['server-0'],
};

export const workerNames: readonly string[] = ['worker-0', 'worker-1', 'worker-2', 'worker-3'];

/** How long each kind lasts, from and to. Freezes and table locks last longer than the lease. */
function lengthsOf(leaseMs: number): Readonly<Record<FaultKind, readonly [number, number]>> {
  const beyondLease = [leaseMs + 500, leaseMs + 2_500] as const;
  return {
    'kill server': [0, 3_000],
    'freeze server': beyondLease,
    'kill worker': [0, 3_000],
    'freeze worker': beyondLease,
    'cut worker': [0, leaseMs],
    'mislead worker': [500, leaseMs],
    'kill redis': [0, 2_000],
    'flush redis': [0, 0],
    'freeze redis': [200, 1_500],
    'hang redis': [200, 1_500],
    'erase redis': [0, 0],
    'cut redis': [0, 2_000],
    'kill postgres': [0, 2_000],
    'lock postgres': beyondLease,
    'cut postgres': [0, 2_000],
  };
}

/** A pure function of the plan: the same seed gives the same faults in the same order. */
export function drawSchedule(plan: SchedulePlan): readonly Fault[] {
  const random = seededRandom(plan.seed);
  const kinds = faultKinds.filter((kind) => meets(kind, plan.engine));
  const lengths = lengthsOf(plan.leaseMs);
  const times = Array.from({ length: plan.faults }, () => random() * plan.durationMs);
  const dealt = shuffled(
    times.map((_, index) => kinds[index % kinds.length] ?? 'kill server'),
    random,
  );
  return times
    .sort((a, b) => a - b)
    .map((atMs, index) => {
      const kind = dealt[index] ?? 'kill server';
      const [least, most] = lengths[kind];
      return {
        kind,
        target: pick(targetsOf(kind, plan.engine), random),
        atMs: Math.round(atMs),
        lastsMs: Math.round(least + random() * (most - least)),
      };
    });
}

export function describeFault({ kind, target, atMs, lastsMs }: Fault): string {
  const length = lastsMs === 0 ? '' : `for ${(lastsMs / 1000).toFixed(1)} s`;
  const [verb = ''] = kind.split(' ');
  const what = verb === 'cut' ? `cut ${cutEnds(kind, target)}` : `${verb} ${target}`;
  return `${(atMs / 1000).toFixed(1).padStart(7)} s  ${what.padEnd(32)} ${length}`.trimEnd();
}

function cutEnds(kind: FaultKind, target: string): string {
  return kind === 'cut worker' ? `${target} from its server` : `${target} from ${kind.slice(4)}`;
}

/** Whether there is what a fault of this kind meets. */
function meets(kind: FaultKind, engine: EngineKind): boolean {
  if (kind.includes('redis')) return engine === 'postgres';
  return !kind.includes('postgres') || engine !== 'embedded';
}

function targetsOf(kind: FaultKind, engine: EngineKind): readonly string[] {
  switch (kind) {
    case 'kill server':
    case 'freeze server':
    case 'cut redis':
    case 'cut postgres':
      return serverNames[engine];
    case 'kill worker':
    case 'freeze worker':
    case 'cut worker':
    case 'mislead worker':
      return workerNames;
    case 'kill redis':
    case 'flush redis':
    case 'freeze redis':
    case 'hang redis':
    case 'erase redis':
      return ['redis'];
    case 'kill postgres':
    case 'lock postgres':
      return ['postgres'];
  }
}

/** Every kind as often as the others, in any order (Fisher-Yates). */
function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  const left = [...items];
  return items.flatMap(() => left.splice(Math.floor(random() * left.length), 1));
}

function pick(items: readonly string[], random: () => number): string {
  return items[Math.floor(random() * items.length)] ?? '';
}
