import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Lab } from '../shared/lab.js';
import { prepareService, Service, type ServiceOptions } from '../shared/service.js';
import { processMegabytes } from '../workers/process-memory.js';

const probe = pathToFileURL(join(import.meta.dirname, 'heap-probe.mjs')).href;

/** One server as a process, on a Postgres, with a Redis or without, that tells what it keeps in memory. */
export class FuzzedService extends Service {
  static async open(
    lab: Lab,
    options: Pick<ServiceOptions, 'ready' | 'leaseMs'>,
  ): Promise<FuzzedService> {
    const nodeArgs = ['--expose-gc', '--import', probe];
    const service = new FuzzedService(
      await prepareService(lab.postgresUrl, { ...options, servers: 1, nodeArgs }),
    );
    await service.startServers();
    return service;
  }

  /** What is in use after a collection: the heap, and buffers beside it. */
  async keptMegabytes(): Promise<number> {
    return Number(await this.ask(0, 'kept bytes')) / 1024 / 1024;
  }

  /** The most that the process ever took from the system, with all that nobody had collected yet. */
  peakMegabytes(): number {
    const [pid] = this.serverPids;
    return pid === undefined ? NaN : processMegabytes(pid, 'VmHWM');
  }
}
