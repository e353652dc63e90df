import type { QueueWire } from '../../protocol/queues-schema.js';
import { allowedOf, type AllowedLines } from '../allowed.js';
import { Panel } from '../components/bits.js';
import { Chart, type Line } from '../components/chart.js';
import type { Range } from '../components/range.js';
import { lostTimeMetrics, lostTimeOf, lostTimeWords } from '../lost-time.js';
import type { Course } from '../series.js';

export const queueMetrics = [
  ...['submitted', 'started', 'completed', 'failed', 'deferred', 'rate_limited', 'dead_letter'],
  ...['wait_p50', 'wait_p95', 'run_p50', 'run_p95', 'tokens_reserved', 'tokens_used', 'depth_ms'],
  ...lostTimeMetrics,
];

/** Units whose use is counted over time. */
const countedUnits: ReadonlySet<string> = new Set(['requests', 'tokens']);

interface Shown {
  readonly course: Course;
  readonly queue: QueueWire;
}

export function QueueCharts({ course, queue, range }: Shown & { range: Range }) {
  return (
    <div class="charts">
      <Depth course={course} />
      <LostThroughput course={course} range={range} />
      <Requests course={course} queue={queue} />
      <Tokens course={course} queue={queue} />
      <Panel title="What went wrong, a minute">
        <Chart
          title="What went wrong, a minute"
          times={course.times}
          unit="count"
          lines={[
            { label: 'failed', values: course.rate('failed'), color: '--c2' },
            { label: 'told to slow down', values: course.rate('rate_limited'), color: '--c4' },
            {
              label: 'dead letters',
              values: course.rate('dead_letter'),
              color: '--c3',
              isFilled: true,
            },
          ]}
        />
      </Panel>
      <Panel title="How long tasks waited and ran">
        <Chart
          title="How long tasks waited and ran"
          times={course.times}
          unit="seconds"
          lines={[
            { label: 'wait p50', values: course.raw('wait_p50'), color: '--c1' },
            { label: 'wait p95', values: course.raw('wait_p95'), color: '--c2' },
            { label: 'run p50', values: course.raw('run_p50'), color: '--c4' },
            { label: 'run p95', values: course.raw('run_p95'), color: '--c3' },
          ]}
        />
      </Panel>
    </div>
  );
}

function Depth({ course }: { course: Course }) {
  const values = course.mean('depth_ms');
  return (
    <Panel title="Tasks in line">
      <Chart
        title="Tasks in line"
        times={course.times}
        unit="count"
        lines={[{ label: 'in line', values, color: '--c1', isFilled: true }]}
      />
      <p class="hint">Sampled every 15 s, of the 200 queues with most in line.</p>
    </Panel>
  );
}

function LostThroughput({ course, range }: { course: Course; range: Range }) {
  const lost = lostTimeOf(course);
  const lines = lost.map((one) => ({ ...one, isFilled: true }));
  return (
    <Panel title="Throughput lost, by cause">
      <p>{lostTimeWords(lost, range)}</p>
      {lost.length === 0 ? null : (
        <Chart
          title="Throughput lost, by cause: share of the time"
          times={course.times}
          unit="share"
          lines={lines}
          isStacked
        />
      )}
    </Panel>
  );
}

function Requests({ course, queue }: Shown) {
  const allowed = allowedOf(queue.live.usage, 'requests');
  return (
    <Panel title="Tasks a minute">
      <Chart
        title="Tasks a minute"
        times={course.times}
        unit="count"
        lines={[
          { label: 'started', values: course.rate('started'), color: '--c1', isFilled: true },
          { label: 'submitted', values: course.rate('submitted'), color: '--c5' },
          ...levels(allowed, course),
        ]}
      />
      <AllowedHint allowed={allowed} queue={queue} />
      <Uncounted queue={queue} />
    </Panel>
  );
}

function Tokens({ course, queue }: Shown) {
  const allowed = allowedOf(queue.live.usage, 'tokens');
  if (course.sum('tokens_reserved') === 0 && allowed.drawn.length === 0) return null;
  return (
    <Panel title="Tokens a minute">
      <Chart
        title="Tokens a minute"
        times={course.times}
        unit="count"
        lines={[
          {
            label: 'reserved',
            values: course.rate('tokens_reserved'),
            color: '--c1',
            isFilled: true,
          },
          { label: 'used', values: course.rate('tokens_used'), color: '--c2' },
          ...levels(allowed, course),
        ]}
      />
      <AllowedHint allowed={allowed} queue={queue} />
    </Panel>
  );
}

function levels({ drawn }: AllowedLines, { times }: Course): Line[] {
  return drawn.map(({ label, perMinute, isTightest }) => ({
    label,
    values: times.map(() => perMinute),
    color: isTightest ? '--c3' : '--c4',
    isDashed: true,
  }));
}

function AllowedHint({ allowed, queue }: { allowed: AllowedLines; queue: QueueWire }) {
  const { drawn, wider } = allowed;
  if (drawn.length === 0) return null;
  const isShared = queue.live.usage.some(({ limit }) => limit !== null);
  return (
    <p class="hint">
      Dashed: what is allowed, as set now, also for the time before; red is the tightest.
      {wider.length === 0
        ? ''
        : ` Too far up to draw: ${wider.map(({ label }) => label).join(', ')}.`}
      {isShared ? ' Of a shared limit other queues use a part, which is not shown.' : ''}
    </p>
  );
}

function Uncounted({ queue }: { queue: QueueWire }) {
  const units = queue.live.usage.map(({ unit }) => unit).filter((unit) => !countedUnits.has(unit));
  if (units.length === 0) return null;
  return (
    <p class="hint">
      What was used of {[...new Set(units)].join(', ')} is known for the window up to now only; see
      Limits.
    </p>
  );
}
