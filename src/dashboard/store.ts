import { useEffect, useState } from 'preact/hooks';

/** A value that components follow. */
export class Store<Value> {
  #value: Value;
  readonly #listeners = new Set<() => void>();

  constructor(value: Value) {
    this.#value = value;
  }

  get(): Value {
    return this.#value;
  }

  set(value: Value): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of [...this.#listeners]) listener();
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export function useStore<Value>(store: Store<Value>): Value {
  const [value, setValue] = useState(store.get());
  useEffect(() => {
    setValue(() => store.get());
    return store.subscribe(() => setValue(() => store.get()));
  }, [store]);
  return value;
}
