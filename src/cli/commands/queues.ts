import type { Command } from 'commander';
import { queuePageToWire } from '../../protocol/queues-wire.js';
import type { QueueView } from '../../protocol/queues-api.js';
import { paint, printJson, printLine, printTable } from '../output.js';
import { pauseText, usageText } from '../queue-text.js';
import { readableSeconds } from '../readable.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';
import { everyPage } from '../pages.js';

export function queuesCommand(program: Command): void {
  const command = program.command('queues').description('Show what every queue holds and does');
  withRemoteOptions(command).action(runQueues);
}

async function runQueues(options: RemoteOptions): Promise<void> {
  const api = await remoteApi(options);
  const items = await everyPage((page) => api.listQueues(page));
  if (options.json === true) printJson(queuePageToWire({ items, nextCursor: null }));
  else if (items.length === 0) printLine('No queues yet: the first task of a queue makes it.');
  else printQueues(items);
}

function printQueues(queues: readonly QueueView[]): void {
  printTable(
    [
      { title: 'queue', least: 10 },
      { title: 'high', align: 'right' },
      { title: 'medium', align: 'right' },
      { title: 'low', align: 'right' },
      { title: 'backlog', align: 'right', spare: 3 },
      { title: 'running', align: 'right' },
      { title: 'done/min', align: 'right', spare: 4 },
      { title: 'failed/min', align: 'right', spare: 2 },
      { title: 'oldest', align: 'right', spare: 5 },
      { title: 'used', least: 16, spare: 1 },
      { title: 'state', least: 20 },
    ],
    queues.map((queue) => {
      const { live } = queue;
      return [
        queue.name,
        String(live.depth.high),
        String(live.depth.medium),
        String(live.depth.low),
        String(live.backlog),
        String(live.running),
        String(live.lastMinute.completed),
        String(live.lastMinute.failed),
        live.oldestAgeSeconds === null ? '' : readableSeconds(live.oldestAgeSeconds),
        usageText(live.usage),
        paint('yellow', pauseText(queue)),
      ];
    }),
  );
}
