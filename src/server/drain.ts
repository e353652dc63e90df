import type { App } from './app-type.js';

/**
 * A server that was told to stop, and answers for a while before it closes. It is not ready, so that load
 * balancers send no more, and every answer asks its client to use another connection: a connection that is
 * closed while a request is on its way would lose the request.
 */
export class Drain {
  readonly #listeners: (() => void)[] = [];
  #hasBegun = false;

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  onBegin(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** May be called twice. */
  begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    for (const listener of this.#listeners) listener();
  }

  watch(app: App): void {
    app.addHook('preClose', (done) => {
      this.begin();
      done();
    });
    app.addHook('onSend', (_request, reply, _payload, done) => {
      if (this.#hasBegun) reply.header('connection', 'close');
      done();
    });
  }
}
