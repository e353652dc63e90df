import type { QueuePageWire } from '../../protocol/queues-schema.js';
import type { AttentionWire, StatisticsWire } from '../../protocol/statistics-schema.js';
import { depthOf, findConcerns, type Concern, type FiringAlert } from '../attention.js';
import { Empty, Failure, Loading, Meter, Panel, Tile } from '../components/bits.js';
import { Chart } from '../components/chart.js';
import { RangeSwitch, rangeOf } from '../components/range.js';
import { config } from '../config.js';
import { compact, count, duration, percent, plural } from '../format.js';
import { href } from '../href.js';
import { usePolled } from '../polled.js';
import { route } from '../router.js';
import { useSeries, type Course } from '../series.js';
import { useStore } from '../store.js';

const metrics = [
  'submitted',
  'completed',
  'failed',
  'dead_letter',
  ...['wait_p50', 'wait_p95', 'wait_p99', 'run_p50', 'run_p95', 'run_p99'],
];

export function OverviewPage() {
  const range = rangeOf(useStore(route).search.get('range'));
  const statistics = usePolled<StatisticsWire>('queue/stats', { everyMs: 2_000 });
  const attention = usePolled<AttentionWire>('attention', { everyMs: 5_000 });
  // Whether there is any.
  const queues = usePolled<QueuePageWire>('queues?limit=1', { everyMs: 5_000 });
  const alerts = usePolled<{ items: readonly FiringAlert[] }>(
    config.has.alerts ? 'alerts?state=firing' : null,
    { everyMs: 5_000 },
  );
  const hour = useSeries(metrics, 'hour');
  const chosen = useSeries(metrics, range);
  const course = chosen.data;
  if (statistics.data === null) {
    return statistics.error === null ? <Loading /> : <Refusal error={statistics.error} />;
  }
  const isNew = queues.data?.items.length === 0;
  return (
    <>
      <h1>Overview</h1>
      {isNew ? (
        <Newcomer />
      ) : (
        <Concerns
          concerns={findConcerns({
            alerts: alerts.data?.items ?? [],
            statistics: statistics.data,
            attention: attention.data,
            lastHour: hour.data === null ? null : totals(hour.data),
            nowMs: Date.now(),
          })}
          isKnown={
            attention.data !== null &&
            hour.data !== null &&
            (alerts.data !== null || !config.has.alerts)
          }
        />
      )}
      <Tiles statistics={statistics.data} />
      <div class="between">
        <h2 class="heading">Over the last {range}</h2>
        <RangeSwitch range={range} />
      </div>
      <Failure error={chosen.error} />
      {course === null ? <Loading /> : <Charts course={course} />}
    </>
  );
}

/** A key that reaches some queues only may not see the sum over all of them. */
function Refusal({ error }: { error: unknown }) {
  return (
    <>
      <h1>Overview</h1>
      <Failure error={error} />
      <p>
        What the key reaches: <a href={href('queues')}>queues</a>, <a href={href('tasks')}>tasks</a>
        , <a href={href('dead-letters')}>dead letters</a>.
      </p>
    </>
  );
}

function totals(course: Course) {
  return {
    completed: course.sum('completed'),
    failed: course.sum('failed'),
    deadLetters: course.sum('dead_letter'),
  };
}

function Newcomer() {
  return (
    <Empty
      title="Nothing was submitted yet."
      command={`sluice submit hello --queue demo --params '{"name":"you"}'`}
    >
      <p>Submit a first task from a terminal, and see it wait here for a worker:</p>
    </Empty>
  );
}

function Concerns({ concerns, isKnown }: { concerns: readonly Concern[]; isKnown: boolean }) {
  if (concerns.length === 0) {
    // That all is well is said only when all was asked.
    if (!isKnown) return null;
    return (
      <p class="well">
        <span aria-hidden="true">✓</span> All is well: nothing is stopped, nothing waits too long,
        few tasks fail.
      </p>
    );
  }
  return (
    <section class="concerns" aria-label="What needs attention">
      <h2>Needs attention</h2>
      <ul>
        {concerns.map(({ severity, text, address }) => (
          <li key={text} class={severity}>
            <a href={address}>{text}</a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Tiles({ statistics }: { statistics: StatisticsWire }) {
  const { queues, workers, throughput, age, admission } = statistics;
  const { completed_last_minute: completed, failed_last_minute: failed } = throughput;
  const ended = completed + failed;
  return (
    <dl class="tiles">
      <Tile
        label="Waiting"
        value={count(depthOf(statistics))}
        note={
          <span class="split">
            {(['high', 'medium', 'low'] as const).map((priority) => (
              <span key={priority}>
                <span class={`priority ${priority}`}>{priority}</span>{' '}
                {compact(queues[priority].depth)}
              </span>
            ))}
          </span>
        }
      />
      <Tile
        label="Running"
        value={
          <Meter
            value={statistics.running}
            max={workers.total_capacity}
            label="Tasks that run, of all places of the workers"
            text={`${count(statistics.running)} / ${count(workers.total_capacity)}`}
          />
        }
        note={`${plural(workers.active, 'worker')}${workers.draining > 0 ? `, ${count(workers.draining)} draining` : ''}`}
      />
      <Tile
        label="Completed in the last minute"
        value={count(completed)}
        note={
          throughput.avg_task_duration_seconds === null
            ? 'none ran'
            : `${duration(throughput.avg_task_duration_seconds)} each on average`
        }
      />
      <Tile
        label="Failed in the last minute"
        value={count(failed)}
        note={ended === 0 ? 'of none' : `${percent(failed / ended)} of the attempts`}
        {...(failed > 0 ? { tone: 'warn' as const } : {})}
      />
      <Tile
        label="Oldest task waits"
        value={duration(age.oldest_seconds)}
        note={
          age.p50_seconds === null
            ? 'nothing waits'
            : `half of them less than ${duration(age.p50_seconds)}`
        }
      />
      <Tile
        label="Not ended"
        value={compact(admission.active)}
        note={`${compact(admission.max_active)} at most`}
      />
    </dl>
  );
}

function Charts({ course }: { course: Course }) {
  const { times } = course;
  const quantiles = (what: string) => [
    { label: 'p50', values: course.raw(`${what}_p50`), color: '--c1' },
    { label: 'p95', values: course.raw(`${what}_p95`), color: '--c2' },
    { label: 'p99', values: course.raw(`${what}_p99`), color: '--c3' },
  ];
  return (
    <div class="charts">
      <Panel title="Tasks a minute">
        <Chart
          title="Tasks a minute"
          times={times}
          unit="count"
          lines={[
            { label: 'completed', values: course.rate('completed'), color: '--c1', isFilled: true },
            { label: 'submitted', values: course.rate('submitted'), color: '--c4' },
          ]}
        />
      </Panel>
      <Panel title="Failures a minute">
        <Chart
          title="Failures a minute"
          times={times}
          unit="count"
          lines={[
            { label: 'failed attempts', values: course.rate('failed'), color: '--c2' },
            {
              label: 'dead letters',
              values: course.rate('dead_letter'),
              color: '--c3',
              isFilled: true,
            },
          ]}
        />
      </Panel>
      <Panel title="How long tasks waited">
        <Chart
          title="How long tasks waited"
          times={times}
          unit="seconds"
          lines={quantiles('wait')}
        />
      </Panel>
      <Panel title="How long attempts ran">
        <Chart
          title="How long attempts ran"
          times={times}
          unit="seconds"
          lines={quantiles('run')}
        />
      </Panel>
    </div>
  );
}
