import type { Lab } from '../shared/lab.js';
import { prepareService, Service } from '../shared/service.js';

/** One server as a process, with a Postgres and a Redis. */
export class FuzzedService extends Service {
  static async open(lab: Lab): Promise<FuzzedService> {
    const service = new FuzzedService(
      await prepareService(lab.postgresUrl, { servers: 1, ready: 'redis' }),
    );
    await service.startServers();
    return service;
  }
}
