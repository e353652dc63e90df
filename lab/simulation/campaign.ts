import type { Crew } from './crew.js';
import type { Outcome } from './job.js';

export interface CampaignOptions {
  readonly first: number;
  readonly count: number;
  readonly steps: number;
  /** Each twice, to see that the same seed gives the same history. */
  readonly isRepeated: boolean;
}

/** One seed after the other, until all are done or one has failed. */
export class Campaign {
  readonly count: number;
  readonly outcomes: Outcome[] = [];
  readonly #crew: Crew;
  readonly #options: CampaignOptions;
  #next: number;
  #unlike: number | null = null;
  #hasFallen = false;

  constructor(crew: Crew, options: CampaignOptions) {
    this.#crew = crew;
    this.#options = options;
    this.#next = options.first;
    this.count = options.count;
  }

  /** A seed that gave two different histories. */
  get unlike(): number | null {
    return this.#unlike;
  }

  get failed(): Outcome | null {
    return this.outcomes.find(({ failure }) => failure !== null) ?? null;
  }

  /** Of `count`; it is all of them as soon as nothing more is to come. */
  get done(): number {
    return this.#isOver() ? this.count : this.outcomes.length;
  }

  async run(processes: number): Promise<void> {
    const lines = Array.from({ length: processes }, () => this.#runLine());
    try {
      await Promise.all(lines);
    } finally {
      this.#hasFallen = true;
    }
  }

  async #runLine(): Promise<void> {
    while (!this.#isOver() && this.#next < this.#options.first + this.count) {
      await this.#live(this.#next++);
    }
  }

  async #live(seed: number): Promise<void> {
    const job = { seed, steps: this.#options.steps };
    const outcome = await this.#crew.do(job);
    if (this.#options.isRepeated) {
      const again = await this.#crew.do(job);
      if (again.digest !== outcome.digest) this.#unlike ??= seed;
    }
    this.outcomes.push(outcome);
  }

  #isOver(): boolean {
    return this.#hasFallen || this.#unlike !== null || this.failed !== null;
  }
}
