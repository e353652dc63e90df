import { randomBytes } from 'node:crypto';
import type { ScalingSettings } from '../domain/scaling.js';
import type { ScaleConfig } from '../runtime/scale-settings.js';
import type { Provisioner } from '../server/provisioner/provisioner.js';
import { fromHere } from './server-url.js';

const drainSeconds = 30;
/** What a process may take beyond the drain itself. */
const graceMs = 20_000;
const mostProcesses = 1_000;

/** Whom a server at this address asks for workers; undefined: nobody. */
export async function openProvisioner({
  provisioner,
  settings,
}: ScaleConfig): Promise<((url: string) => Provisioner) | undefined> {
  switch (provisioner.kind) {
    case 'none':
      return undefined;
    case 'webhook': {
      const { WebhookProvisioner } = await import('../server/provisioner/webhook.js');
      return () => new WebhookProvisioner(provisioner);
    }
    case 'process': {
      const [{ ProcessProvisioner }, { startScaledWorker }] = await Promise.all([
        import('../server/provisioner/process.js'),
        import('./worker/scaled-worker.js'),
      ]);
      // Of no other server, whichever machine or container it runs in.
      const prefix = `scaled-${randomBytes(4).toString('hex')}`;
      return (url) =>
        new ProcessProvisioner({
          prefix,
          start: (number) =>
            startScaledWorker(
              workerArgs({ number, prefix, url, module: provisioner.module }, settings),
            ),
          drainMs: drainSeconds * 1000 + graceMs,
        });
    }
  }
}

interface Started {
  readonly number: number;
  readonly prefix: string;
  readonly url: string;
  readonly module: string;
}

/** One of as many as there may be: each gets its share of the memory. */
function workerArgs({ number, prefix, url, module }: Started, settings: ScalingSettings): string[] {
  const { max, concurrency, offer } = settings;
  const given = (flag: string, values: readonly string[] | null) =>
    values === null || values.length === 0 ? [] : [flag, values.join(',')];
  return [
    'worker',
    ...['--child', String(number), '--processes', String(Math.min(max, mostProcesses))],
    ...['--name', prefix, '--url', fromHere(url), '--module', module],
    ...['--concurrency', String(concurrency), '--drain-timeout', String(drainSeconds)],
    ...given('--queues', offer.queues),
    ...given('--capabilities', offer.capabilities),
  ];
}
