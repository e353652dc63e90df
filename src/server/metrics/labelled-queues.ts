import { priorities } from '../../domain/priority.js';
import type { QueueLine } from '../../engine/line.js';

/** Queues that metrics name. All others are summed up under one name. */
const maxLabelledQueues = 200;

/**
 * Which queues metrics name: those that somebody configured first, then the busiest. A queue keeps its name while it
 * is configured or has tasks, so that its series has no gaps.
 */
export class LabelledQueues {
  readonly #max: number;
  #names: ReadonlySet<string> = new Set();

  constructor(max = maxLabelledQueues) {
    this.#max = max;
  }

  choose(
    lines: ReadonlyMap<string, QueueLine>,
    configured: ReadonlySet<string>,
  ): ReadonlySet<string> {
    const kept = [...this.#names].filter((name) => lines.has(name) || configured.has(name));
    const chosen = new Set(kept);
    for (const names of [configured, lines.keys()]) {
      // As a rule: then nothing is sorted.
      if (chosen.size >= this.#max) break;
      const others = [...names].filter((name) => !chosen.has(name));
      const sized = others.map((name) => ({ name, tasks: tasksIn(lines.get(name)) }));
      sized.sort((a, b) => b.tasks - a.tasks || (a.name < b.name ? -1 : 1));
      for (const { name } of sized.slice(0, this.#max - chosen.size)) chosen.add(name);
    }
    this.#names = chosen;
    return chosen;
  }
}

function tasksIn(line: QueueLine | undefined): number {
  if (line === undefined) return 0;
  return priorities.reduce((sum, one) => sum + line.waiting[one].count, line.running);
}
