import type { Lab } from '../../../lab/shared/lab.js';
import type { Row, Scenario } from '../../../lab/shared/scenario.js';
import { arrangements, observe, type Arrangement } from '../observe.js';
import { jitterRow, rowsOf } from '../rows.js';

export const rates: Scenario = {
  name: 'rates',
  about: 'never more than R in any sliding window, and 99.5 % of R used while there is work',
  run: async (lab) => {
    const rows: Row[] = [];
    for (const arrangement of Object.values(arrangements)) {
      lab.progress.say(`  ${arrangement.title}`);
      rows.push(...(await measureRates(lab, arrangement)));
    }
    return rows;
  },
};

async function measureRates(lab: Lab, arrangement: Arrangement): Promise<Row[]> {
  const queues = [20, 600, 6_000].map((perMinute) => ({ name: `r${perMinute}`, perMinute }));
  const observed = await observe(lab, arrangement, queues, 'call', lab.size(130, 13));
  return [
    ...queues.flatMap((queue) => rowsOf(arrangement, queue, observed)),
    jitterRow(arrangement.title, observed),
  ];
}
