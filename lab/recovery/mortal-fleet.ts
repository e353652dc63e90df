import type { ServiceOptions } from '../shared/service.js';
import { MortalPostgres } from '../chaos/mortal-postgres.js';
import { Fleet } from '../workers/fleet.js';

/** Servers and workers on a Postgres of their own, which can be killed. */
export class MortalFleet implements AsyncDisposable {
  readonly postgres: MortalPostgres;
  readonly fleet: Fleet;

  private constructor(postgres: MortalPostgres, fleet: Fleet) {
    this.postgres = postgres;
    this.fleet = fleet;
  }

  static async start(
    durable: boolean,
    options: Partial<ServiceOptions> = {},
  ): Promise<MortalFleet> {
    const postgres = await MortalPostgres.start(durable);
    try {
      return new MortalFleet(postgres, await Fleet.start(postgres.url, options));
    } catch (error) {
      await postgres.stop();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fleet[Symbol.asyncDispose]();
    await this.postgres.stop();
  }
}
