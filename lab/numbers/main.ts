// How quickly numbers are answered when there is much to count: npm run numbers -- --help
import { runLab } from '../shared/command.js';
import { cost } from './cost.js';
import { many } from './scenario.js';

await runLab({
  name: 'numbers',
  title: 'Numbers, measured',
  preface: `How long \`/metrics\`, \`GET /api/v1/queue/stats\` and a page of \`GET /api/v1/queues\` take with 10,000 queues of
100 tasks each, while 1,000 tasks a second are submitted and completed over HTTP; and what numbers, alerts and logs cost a
flow that has all that it can get. The servers, Postgres, Redis and the program that drives them share one machine.`,
  scenarios: [many('memory'), many('redis'), cost],
  numbers: {
    seconds: { about: 'how long it is measured', whole: 60, quick: 5 },
    rate: { about: 'tasks a second', whole: 1_000, quick: 200 },
    rounds: { about: 'rounds of each server, for the cost', whole: 9, quick: 2 },
    'round-seconds': { about: 'how long each is', whole: 15, quick: 2 },
  },
  texts: { against: 'a built checkout of an older commit that the cost is compared with too' },
});
