/** A signal between a test and a handler: whoever passes waits until somebody opens it. */
export class Gate<Value = void> {
  readonly passed: Promise<Value>;
  #open: (value: Value) => void = () => undefined;

  constructor() {
    this.passed = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  open(value: Value): void {
    this.#open(value);
  }
}
