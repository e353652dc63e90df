import { Callers } from '../../../test/support/callers.js';
import { count, judged, noted, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet } from '../../workers/fleet.js';
import { runAgain } from '../../workers/run-log.js';

const callers = 50;
const task = { task_type: 'step', parameters: { ms: 20 } };

export const rollingRestarts: Scenario = {
  name: 'rolling-restarts',
  about: `${callers} callers with kept connections, two servers over one Redis that get SIGTERM in turn, two workers`,
  run: async (lab) => {
    const restarts = lab.size(10, 2);
    const drainMs = lab.size(5_000, 1_500);
    await using fleet = await Fleet.start(lab.postgresUrl, {
      servers: 2,
      ready: 'redis',
      serveEnv: { SLUICE_DRAIN_MS: String(drainMs) },
    });
    await fleet.startWorkers([
      { name: 'a', concurrency: 100, at: 0 },
      { name: 'b', concurrency: 100, at: 1 },
    ]);
    const calling = new Callers(fleet.urls, callers, task);
    try {
      for (let restart = 0; restart < restarts; restart += 1) {
        const server = restart % 2;
        lab.progress.say(`restart ${restart + 1} of ${restarts}`);
        await fleet.until('it to be called', () => calling.isUsed(fleet.url(server)));
        await fleet.terminateServer(server);
        await fleet.startServer(server);
      }
    } finally {
      await calling.stop();
    }
    await fleet.untilEmpty();
    return await rowsOf(fleet, calling, restarts);
  },
};

async function rowsOf(fleet: Fleet, calling: Callers, restarts: number): Promise<Row[]> {
  const { failures, answered } = calling;
  const resets = failures.filter(({ why }) => why.includes('ECONNRESET')).length;
  const again = runAgain(fleet.notes()).length;
  const completed = await fleet.countCompleted();
  return [
    judged(
      {
        what: `${count(answered)} submits during ${restarts} restarts: connections reset; requests that failed in any way`,
        measured: `${resets}; ${failures.length}`,
        numbers: { answered, resets, failed: failures.length },
      },
      '0; 0',
      failures.length === 0,
    ),
    judged(
      {
        what: 'tasks completed of those accepted; run again after they had ended',
        measured: `${count(completed)} of ${count(answered)}; ${again}`,
        numbers: { completed, answered, again },
      },
      'all; 0',
      completed === answered && again === 0,
    ),
    ...(failures.length === 0 ? [] : [firstFailures(failures)]),
  ];
}

function firstFailures(failures: Callers['failures']): Row {
  const reasons = new Set(failures.map(({ why }) => why));
  return noted({
    what: 'what failed',
    measured: [...reasons].slice(0, 5).join('; '),
    numbers: { reasons: reasons.size },
  });
}
