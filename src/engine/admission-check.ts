import {
  beginReconciling,
  findUnsetCeilings,
  reconcileAdmission,
  setCeiling,
} from '../store/admission.js';
import { instant, patiently, type EngineContext } from './context.js';

/** The count reads every task: what takes longer is done less often, a thousandth of the time. */
const quickMs = 60;
const longestRestMs = 3_600_000;
/** Servers that start together compare once. */
const justNowMs = 1_000;

/**
 * Compares the counts of active tasks with the tasks themselves, and puts them right: after an older
 * server ran beside this one, or somebody wrote to the tables by hand.
 */
export class AdmissionCheck {
  readonly #context: EngineContext;
  #restMs: number;
  #isFirst = true;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#restMs = context.settings.admissionCheckMs;
  }

  async tick(): Promise<number> {
    const { db, settings } = this.#context;
    const sinceMs = this.#isFirst ? Math.min(justNowMs, this.#restMs) : this.#restMs;
    if (await beginReconciling(db, sinceMs, instant(this.#context))) {
      this.#isFirst = false;
      const times = Math.max(1, (await this.#compare()) / quickMs);
      this.#restMs = Math.min(longestRestMs, settings.admissionCheckMs * times);
    }
    return this.#restMs;
  }

  async #compare(): Promise<number> {
    const { db, log } = this.#context;
    for (const { queue, maxActive } of await findUnsetCeilings(db)) {
      await patiently(() => setCeiling(db, queue, maxActive));
    }
    const beganMs = performance.now();
    for (const { scope, by } of await patiently(() => reconcileAdmission(db))) {
      log.warn(
        { queue: scope || null, by },
        'the count of active tasks was wrong and is put right',
      );
    }
    return performance.now() - beganMs;
  }
}
