import fc from 'fast-check';

type Kind = 'task' | 'worker' | 'lease';

const places = 24;
const unknownId = '0197f0c4-8a3b-7c21-9d55-3f0f5a1c2b3d';

function marks(kind: Kind): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.nat(places - 1).map((place) => mark(kind, place)) },
    { weight: 1, arbitrary: fc.constant(unknownId) },
  );
}

function mark(kind: Kind, place: number): string {
  return `~${kind}-${place}~`;
}

/** Stand in for ids that a server gave: what is generated then depends on the seed alone. */
export const known = {
  task: unknownId,
  tasks: marks('task'),
  workers: marks('worker'),
  leases: marks('lease'),
};

/** The ids that a server gave last, to be asked for again. */
export class KnownIds {
  readonly #ids: Record<Kind, string[]> = { task: [], worker: [], lease: [] };
  #next = 0;

  /** From an answer, whatever else is in it. */
  learn(answer: string): void {
    for (const [, name = '', id = ''] of answer.matchAll(
      /"(task|worker|lease)(?:_id)?":"([^"]+)"/g,
    )) {
      const ids = this.#ids[name as Kind];
      // A lease and its task keep the same place.
      if (name === 'task') this.#next = (this.#next + 1) % places;
      ids[name === 'worker' ? ids.length % places : this.#next] = id;
    }
  }

  fill(text: string): string {
    return text.replace(/~(task|worker|lease)-(\d+)~/g, (_, kind: Kind, place: string) => {
      const ids = this.#ids[kind];
      return ids[Number(place) % Math.max(1, ids.length)] ?? unknownId;
    });
  }
}
