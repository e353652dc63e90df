import type { Command } from 'commander';
import { workerPageToWire } from '../../protocol/workers-wire.js';
import type { WorkerView } from '../../protocol/workers-api.js';
import { paint, printJson, printLine, printTable } from '../output.js';
import { everyPage } from '../pages.js';
import { readableAge } from '../readable.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

export function workersCommand(program: Command): void {
  const command = program.command('workers').description('Show who takes tasks');
  withRemoteOptions(command).action(runWorkers);
}

async function runWorkers(options: RemoteOptions): Promise<void> {
  const api = await remoteApi(options);
  const items = await everyPage((page) => api.listWorkers(page));
  if (options.json === true) printJson(workerPageToWire({ items, nextCursor: null }));
  else if (items.length === 0) printLine('No workers: "sluice worker --module FILE" starts one.');
  else printWorkers(items);
}

function printWorkers(workers: readonly WorkerView[]): void {
  const now = new Date();
  printTable(
    [
      { title: 'worker' },
      { title: 'name', least: 8, spare: 4 },
      { title: 'host', least: 8, spare: 2 },
      { title: 'status' },
      { title: 'running', align: 'right' },
      { title: 'slots', align: 'right' },
      { title: 'heard of', spare: 1 },
      { title: 'types', least: 10, spare: 3 },
    ],
    workers.map((worker) => [
      worker.workerId,
      worker.name ?? '',
      worker.host ?? '',
      statusText(worker, now),
      String(worker.currentLoad),
      String(worker.capacity),
      readableAge(worker.lastHeartbeatAt, now),
      worker.taskTypes?.join(', ') ?? 'every type',
    ]),
  );
}

function statusText({ status, benchedUntil }: WorkerView, now: Date): string {
  if (status === 'dead') return paint('red', 'dead');
  if (benchedUntil === null) return status;
  const seconds = Math.ceil((benchedUntil.getTime() - now.getTime()) / 1000);
  return paint('yellow', seconds > 0 ? `${status}, benched for ${seconds} s` : `${status}, tried`);
}
