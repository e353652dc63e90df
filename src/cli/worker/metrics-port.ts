import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { WorkerHealth } from '../../worker/health.js';
import { CliError } from '../failure.js';

export interface MetricsAddress {
  readonly host: string;
  readonly port: number;
}

export interface MetricsPort {
  readonly url: string;
  readonly close: () => void;
}

const plainText = 'text/plain; charset=utf-8';
/** Prometheus' own format; prom-client writes no other unless told to. */
const metricsText = 'text/plain; version=0.0.4; charset=utf-8';

/** What is asked of a worker. */
export interface Asked {
  readonly text: () => Promise<string>;
  readonly health: () => Promise<WorkerHealth>;
}

/** Answers /metrics, /healthz and /readyz, and nothing else. */
export async function openMetricsPort(
  { host, port }: MetricsAddress,
  { text, health }: Asked,
): Promise<MetricsPort> {
  const server = createServer(({ method = '', url = '' }, response) => {
    if (method !== 'GET' && method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      answer(response, 405, plainText, 'Only GET is answered here.\n');
      return;
    }
    const [path] = url.split('?');
    if (path === '/healthz') void answerHealth(response, health, 'isHealthy');
    else if (path === '/readyz') void answerHealth(response, health, 'isReady');
    else if (path === '/metrics') void answerMetrics(response, text);
    else answer(response, 404, plainText, 'There is /metrics, /healthz and /readyz.\n');
  });
  server.listen(port, host);
  await once(server, 'listening').catch((error: unknown) => {
    throw explain(error, host, port);
  });
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}/metrics`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answerMetrics(response: ServerResponse, text: () => Promise<string>): Promise<void> {
  try {
    answer(response, 200, metricsText, await text());
  } catch (error) {
    answer(response, 500, plainText, `${(error as Error).message}\n`);
  }
}

async function answerHealth(
  response: ServerResponse,
  health: () => Promise<WorkerHealth>,
  wanted: 'isHealthy' | 'isReady',
): Promise<void> {
  const { reason, ...is } = await health();
  const status = is.isReady ? 'ready' : is.isHealthy ? 'draining' : 'failing';
  const body = JSON.stringify(reason === null ? { status } : { status, reason });
  answer(response, is[wanted] ? 200 : 503, 'application/json', `${body}\n`);
}

function answer(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type }).end(body);
}

function explain(error: unknown, host: string, port: number): CliError {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') {
    return new CliError(`Port ${port} is taken by another process.`, {
      next: 'Choose another with --metrics-port; 0 takes any free port.',
      cause: error,
    });
  }
  return new CliError(`Metrics can't be served at ${host}: ${message}.`, {
    next: '--metrics-host must be an address of this machine.',
    cause: error,
  });
}
