// What the dashboard costs and how quickly it answers when there is much to show: npm run dashboard -- --help
import { runLab } from '../shared/command.js';
import { large } from './large.js';

await runLab({
  name: 'dashboard',
  title: 'The dashboard, measured',
  preface: `10,000 queues of 100 tasks each, and 1,000 tasks a second that are submitted and completed over HTTP. What the pages
ask for is taken from the pages themselves: Chromium opens each of them, and the addresses it asked are asked again and
again. The server, Postgres, Redis, the browser and the program that drives all of them share one machine.`,
  scenarios: [large],
  numbers: {
    seconds: { about: 'how long the answers are measured', whole: 30, quick: 1 },
    rate: { about: 'tasks a second', whole: 1_000, quick: 100 },
    rounds: { about: 'rounds with ten tabs and without', whole: 7, quick: 1 },
    'round-seconds': { about: 'how long each half of a round takes', whole: 10, quick: 1 },
  },
});
