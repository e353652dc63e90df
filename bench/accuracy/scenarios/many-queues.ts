import type { Lab } from '../../../lab/shared/lab.js';
import { count, type Row, type Scenario } from '../../../lab/shared/scenario.js';
import { arrangements, observe, type Arrangement, type LimitedQueue } from '../observe.js';
import { extremeRows } from '../rows.js';

const measured = [arrangements.oneInMemory, arrangements.three, arrangements.threeWithFaults];

export const manyQueues: Scenario = {
  name: 'many-queues',
  about: 'the same with 40 queues at each rate, tasks that do nothing',
  run: async (lab) => {
    const rows: Row[] = [];
    for (const arrangement of measured) {
      lab.progress.say(`  40 queues, ${arrangement.title}`);
      rows.push(...(await measureSlow(lab, arrangement)), ...(await measureFast(lab, arrangement)));
    }
    return rows;
  },
};

async function measureSlow(lab: Lab, arrangement: Arrangement): Promise<Row[]> {
  const [ofTwenty, ofSixHundred] = [queuesAt(40, 20), queuesAt(40, 600)];
  const both = [...ofTwenty, ...ofSixHundred];
  const observed = await observe(lab, arrangement, both, 'noop', lab.size(130, 13));
  return [ofTwenty, ofSixHundred].flatMap((queues) =>
    extremeRows(nameOf(queues, arrangement), queues, observed, !arrangement.faults),
  );
}

/** 4,000 a second in all, which a small machine need not reach: what it uses of it is told. */
async function measureFast(lab: Lab, arrangement: Arrangement): Promise<Row[]> {
  const queues = queuesAt(lab.size(40, 4), 6_000);
  const observed = await observe(lab, arrangement, queues, 'noop', lab.size(65, 9));
  return extremeRows(nameOf(queues, arrangement), queues, observed, false);
}

function queuesAt(length: number, perMinute: number): readonly LimitedQueue[] {
  return Array.from({ length }, (_, n) => ({ name: `many-${perMinute}-${n}`, perMinute }));
}

function nameOf(queues: readonly LimitedQueue[], { title }: Arrangement): string {
  return `${queues.length} queues of ${count(queues[0]?.perMinute ?? 0)}/min, ${title}`;
}
