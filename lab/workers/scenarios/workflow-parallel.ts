import { seededRandom } from '../../shared/measure.js';
import { count, judged, noted, seconds, type Scenario } from '../../shared/scenario.js';
import { Fleet } from '../fleet.js';
import { mostAtOnce } from '../run-log.js';

const workflows = 100;
const members = 10;
const wantedRatio = 1.3;

export const workflowParallel: Scenario = {
  name: 'workflow-parallel',
  about: '100 workflows of 10 tasks of 300 to 700 ms each at once, 3 workers with 50 slots each',
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl);
    await fleet.startWorkers(['a', 'b', 'c'].map((name) => ({ name, concurrency: 50 })));
    const scale = lab.size(1, 0.2);
    const random = seededRandom(1);
    const drafts = Array.from({ length: workflows * members }, (_, index) => ({
      taskType: 'step',
      workflowId: `workflow-${index % workflows}`,
      parameters: { ms: Math.round((300 + random() * 400) * scale) },
    }));
    await fleet.put('default', { paused: true });
    const taskIds = await fleet.submit(drafts);
    await fleet.api().resumeQueue('default');
    await fleet.untilEmpty();

    const notes = fleet.notes();
    const tookMs = Math.max(...notes.map(({ at }) => at)) - (notes[0]?.at ?? 0);
    const workOf = sumByWorkflow(drafts);
    const longestMs = Math.max(...workOf.values());
    const ratio = tookMs / longestMs;
    const workflowOf = new Map<string, number>(taskIds.map((id, index) => [id, index % workflows]));
    const mostInOne = Math.max(
      ...Array.from({ length: workflows }, (_, workflow) =>
        mostAtOnce(notes.filter(({ taskId }) => workflowOf.get(taskId) === workflow)),
      ),
    );
    return [
      judged(
        {
          what: 'all; what the tasks of the longest one take, without a moment between them; ratio',
          measured: `${seconds(tookMs)}; ${seconds(longestMs)}; ${ratio.toFixed(2)}`,
          numbers: { tookMs, longestMs, ratio },
        },
        `≤ ${wantedRatio}`,
        ratio <= wantedRatio,
      ),
      judged(
        {
          what: 'most at once of any workflow; completed',
          measured: `${count(mostInOne)}; ${count(await fleet.countCompleted())}`,
          numbers: { mostInOne },
        },
        `1; ${count(drafts.length)}`,
        mostInOne === 1 && (await fleet.countCompleted()) === drafts.length,
      ),
      noted({
        what: 'most at once of all',
        measured: count(mostAtOnce(notes)),
        numbers: { most: mostAtOnce(notes) },
      }),
    ];
  },
};

interface Member {
  readonly workflowId: string;
  readonly parameters: { readonly ms: number };
}

function sumByWorkflow(drafts: readonly Member[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { workflowId, parameters } of drafts) {
    sums.set(workflowId, (sums.get(workflowId) ?? 0) + parameters.ms);
  }
  return sums;
}
