import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** One call, by the clock of this machine, which Postgres and the workers go by as well. */
export interface Call {
  readonly taskId: string;
  readonly queue: string;
  readonly attempt: number;
  /** By the caller. */
  readonly sentAt: number;
  readonly receivedAt: number;
  answeredAt: number | null;
}

export interface StandIn {
  readonly url: string;
  readonly calls: readonly Call[];
  close(): Promise<void>;
}

/** The service that tasks call: it takes as long as it is told to, and writes down every call. */
export async function startStandIn(): Promise<StandIn> {
  const calls: Call[] = [];
  const server = createServer((request, response) => {
    const receivedAt = Date.now();
    const { searchParams } = new URL(request.url ?? '/', 'http://stand-in');
    const call: Call = {
      taskId: searchParams.get('task') ?? '',
      queue: searchParams.get('queue') ?? '',
      attempt: Number(searchParams.get('attempt')),
      sentAt: Number(searchParams.get('sent_at')),
      receivedAt,
      answeredAt: null,
    };
    calls.push(call);
    void delay(Number(searchParams.get('hold_ms'))).then(() => {
      call.answeredAt = Date.now();
      response.writeHead(204).end();
    });
  });
  // A worker keeps its connections; one that is closed under it would fail a task.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
