/** Ids are drawn anew in every run; the order in which they are first seen is not. */
export class Names {
  readonly #names = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  of(kind: 'task' | 'lease' | 'worker', id: string): string {
    const known = this.#names.get(id);
    if (known !== undefined) return known;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    const name = `${kind}-${count}`;
    this.#names.set(id, name);
    return name;
  }
}
