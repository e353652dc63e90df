import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A service that tasks call. While it is away every call is answered 503, and was made in vain. */
export class MoodyService implements AsyncDisposable {
  answered = 0;
  wasted = 0;
  isAway = false;
  readonly #server = createServer((_request, response) => {
    void delay(this.#answerMs).then(() => {
      const { isAway } = this;
      if (isAway) this.wasted += 1;
      else this.answered += 1;
      response.writeHead(isAway ? 503 : 200).end();
    });
  });
  readonly #answerMs: number;

  private constructor(answerMs: number) {
    this.#answerMs = answerMs;
    // A worker keeps its connections; one that is closed under it would fail a task.
    this.#server.keepAliveTimeout = 0;
  }

  static async start(answerMs: number): Promise<MoodyService> {
    const service = new MoodyService(answerMs);
    await new Promise<void>((resolve) => service.#server.listen(0, '127.0.0.1', resolve));
    return service;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}
