import type { Command } from 'commander';
import type { WorkerId } from '../../domain/ids.js';
import { workerDetailToWire, workerPageToWire } from '../../protocol/workers-wire.js';
import type { WorkerDetail, WorkerView } from '../../protocol/workers-api.js';
import { workerId } from '../options.js';
import { paint, printFields, printJson, printLine, printTable } from '../output.js';
import { everyPage } from '../pages.js';
import { readableAge } from '../readable.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

export function workersCommand(program: Command): void {
  const command = program
    .command('workers')
    .argument('[id]', 'one worker, with what it holds and how it is', workerId)
    .description('Show who takes tasks');
  withRemoteOptions(command).action(runWorkers);
}

async function runWorkers(id: WorkerId | undefined, options: RemoteOptions): Promise<void> {
  const api = await remoteApi(options);
  if (id !== undefined) {
    const worker = await api.getWorker(id);
    if (options.json === true) printJson(workerDetailToWire(worker));
    else printWorker(worker);
    return;
  }
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
      { title: 'name', least: 8, spare: 6 },
      { title: 'host', least: 8, spare: 4 },
      { title: 'status' },
      { title: 'running', align: 'right' },
      { title: 'slots', align: 'right' },
      { title: 'cores', align: 'right', spare: 2 },
      { title: 'memory', align: 'right', spare: 3 },
      { title: 'heard of', spare: 1 },
      { title: 'types', least: 10, spare: 5 },
    ],
    workers.map((worker) => [
      worker.workerId,
      worker.name ?? '',
      worker.host ?? '',
      statusText(worker, now),
      String(worker.currentLoad),
      String(worker.capacity),
      worker.cpuUsage?.toFixed(2) ?? '',
      memoryText(worker),
      readableAge(worker.lastHeartbeatAt, now),
      worker.taskTypes?.join(', ') ?? 'every type',
    ]),
  );
}

function printWorker(worker: WorkerDetail): void {
  const now = new Date();
  const { cpuUsage, eventLoopDelayMs, consecutiveFailures, drainRequestedAt, currentTasks } =
    worker;
  printFields([
    ['worker', worker.workerId],
    ...field('name', worker.name),
    ...field('host', worker.host),
    ...field('version', worker.version),
    ['status', statusText(worker, now)],
    ['running', `${worker.currentLoad} of ${worker.capacity}, ${worker.availableCapacity} free`],
    ...field('cores in use', cpuUsage === null ? null : cpuUsage.toFixed(2)),
    ...field('memory', memoryText(worker)),
    ...field(
      'event loop delay',
      eventLoopDelayMs === null ? null : `${Math.round(eventLoopDelayMs)} ms`,
    ),
    ['failed in a row', String(consecutiveFailures)],
    ...field('drain requested', drainRequestedAt && readableAge(drainRequestedAt, now)),
    ['registered', readableAge(worker.registeredAt, now)],
    ['heard of', readableAge(worker.lastHeartbeatAt, now)],
    ['types', worker.taskTypes?.join(', ') ?? 'every type'],
    ['queues', worker.queues?.join(', ') ?? 'every queue'],
    ...field('capabilities', worker.capabilities.join(', ')),
    ...field('health', worker.health && JSON.stringify(worker.health)),
    ...field('tasks', tasksText(currentTasks, worker.currentLoad)),
  ]);
}

/** One to a line. */
function tasksText(shown: readonly string[], running: number): string {
  const others = running - shown.length;
  return [...shown, ...(others > 0 && shown.length > 0 ? [`and ${others} more`] : [])].join(
    `\n${' '.repeat('event loop delay  '.length)}`,
  );
}

function field(name: string, value: string | null): [string, string][] {
  return value === null || value === '' ? [] : [[name, value]];
}

function memoryText({ memoryUsage }: WorkerView): string {
  if (memoryUsage === null) return '';
  const percent = memoryUsage * 100;
  return `${percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`;
}

function statusText({ status, benchedUntil, drainRequestedAt }: WorkerView, now: Date): string {
  if (status === 'dead') return paint('red', 'dead');
  const said = status === 'active' && drainRequestedAt !== null ? 'active, asked to leave' : status;
  if (benchedUntil === null) return said;
  const seconds = Math.ceil((benchedUntil.getTime() - now.getTime()) / 1000);
  return paint('yellow', seconds > 0 ? `${said}, suspended for ${seconds} s` : `${said}, tried`);
}
