import type { Command } from 'commander';
import { queuePageToWire } from '../../protocol/queues-wire.js';
import { seriesToWire } from '../../protocol/series-wire.js';
import { statisticsToWire } from '../../protocol/statistics-wire.js';
import { wholeNumber } from '../options.js';
import { printJson, printLine } from '../output.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';
import { askServer } from '../top/ask-server.js';
import { LiveTop } from '../top/live-top.js';
import { drawScreen } from '../top/screen.js';

interface TopOptions extends RemoteOptions {
  readonly interval: number;
  readonly once?: boolean;
}

export function topCommand(program: Command): void {
  const command = program
    .command('top')
    .description('Watch queues, workers and what needs attention, live')
    .option('--interval <seconds>', 'between two looks', wholeNumber(1, 3_600), 1)
    .option('--once', 'print it once and end; so it does where there is no terminal');
  withRemoteOptions(command).action(runTop);
}

async function runTop(options: TopOptions): Promise<void> {
  const api = await remoteApi(options);
  const ask = () => askServer(api);
  if (options.json === true) {
    const { statistics, queues, series } = await ask();
    printJson({
      statistics: statisticsToWire(statistics),
      queues: queuePageToWire({ items: queues, nextCursor: null }).items,
      series: seriesToWire(series),
    });
  } else if (options.once === true || !process.stdout.isTTY) {
    await printOnce(options, ask);
  } else {
    await new LiveTop({ server: options.url, intervalMs: options.interval * 1000, ask }).run();
  }
}

async function printOnce({ url }: TopOptions, ask: () => ReturnType<typeof askServer>) {
  const shown = await ask();
  const lines = drawScreen(shown, {
    server: url,
    now: new Date(),
    width: process.stdout.isTTY ? process.stdout.columns : 120,
    height: shown.queues.length + 30,
    order: 'waiting',
    offset: 0,
    trouble: null,
  });
  const last = lines.slice(0, -1).findLastIndex((line) => line !== '');
  for (const line of lines.slice(0, last + 1)) printLine(line);
}
