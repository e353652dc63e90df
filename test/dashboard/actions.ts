import { randomUUID } from 'node:crypto';
import type { ScopedRoute } from '../../src/server/route-scopes.js';
import type { Role } from '../../src/server/dashboard/index.js';
import type { MountedStand } from './mounted-stand.js';

/** A call of the dashboard that succeeds for those who may make it. */
export interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

interface Action {
  /** Who may do the least and may do this. */
  readonly least: Role;
  /** Makes what the call is about, anew for each call. */
  readonly prepare: (stand: MountedStand) => Promise<Omit<Call, 'method'>>;
}

const queue = 'mounted';

/** By method and path of the server's own route table. A test fails while a route is missing here. */
export const actions: Readonly<Record<string, Action>> = {
  'GET /api/v1/tasks': read('/tasks?limit=1'),
  'GET /api/v1/tasks/count': read('/tasks/count?queue=mounted&action=cancel'),
  'GET /api/v1/attention': read('/attention'),
  'GET /api/v1/tasks/:task_id': readTask(''),
  'GET /api/v1/tasks/:task_id/explain': readTask('/explain'),
  'GET /api/v1/tasks/:task_id/wait': readTask('/wait?timeout_seconds=0'),
  'GET /api/v1/events': read(`/events?queue=${queue}`),
  'GET /api/v1/task-types': read('/task-types'),
  'GET /api/v1/task-types/:name': read('/task-types/broken'),
  'GET /api/v1/queues': read('/queues'),
  'GET /api/v1/queues/:name': read(`/queues/${queue}`),
  'GET /api/v1/queues/:name/forecast': read(`/queues/${queue}/forecast`),
  'GET /api/v1/queues/:name/pushbacks': read(`/queues/${queue}/pushbacks`),
  'GET /api/v1/limits': read('/limits'),
  'GET /api/v1/limits/:name': about('read', async (stand) => ({
    path: `/limits/${await stand.limit()}`,
  })),
  'GET /api/v1/queue/stats': read('/queue/stats'),
  'GET /api/v1/series': read('/series?metric=completed'),
  'GET /api/v1/alerts': read('/alerts'),
  'GET /api/v1/scaling': read('/scaling'),
  'GET /api/v1/dlq': read('/dlq'),
  'GET /api/v1/dlq/analysis': read('/dlq/analysis'),
  'GET /api/v1/workers': read('/workers'),
  'GET /api/v1/workers/:worker_id': about('read', async (stand) => ({
    path: `/workers/${await stand.workerId()}`,
  })),

  'POST /api/v1/tasks': about('operator', async () => ({
    path: '/tasks',
    body: { task_type: 'waits', queue },
  })),
  'POST /api/v1/tasks/batch': about('operator', async () => ({
    path: '/tasks/batch',
    body: { tasks: [{ task_type: 'waits', queue }] },
  })),
  'DELETE /api/v1/tasks/:task_id': about('operator', async (stand) => ({
    path: `/tasks/${await stand.taskId()}`,
  })),
  'PATCH /api/v1/tasks/:task_id': about('operator', async (stand) => ({
    path: `/tasks/${await stand.taskId()}`,
    body: { priority: 'high' },
  })),
  'POST /api/v1/tasks/cancel': about('operator', async () => ({
    path: '/tasks/cancel',
    body: { queue, tag: 'none' },
  })),
  'POST /api/v1/tasks/replay': about('operator', async () => ({
    path: '/tasks/replay',
    body: { queue, tag: 'none' },
  })),
  'POST /api/v1/tasks/reprioritise': about('operator', async () => ({
    path: '/tasks/reprioritise',
    body: { tag: 'none', new_priority: 'high' },
  })),
  'POST /api/v1/tasks/:task_id/replay': about('operator', async (stand) => ({
    path: `/tasks/${await stand.deadLetterId()}/replay`,
    body: {},
  })),
  'POST /api/v1/dlq/replay': about('operator', async () => ({
    path: '/dlq/replay',
    body: { queue: 'none' },
  })),
  'POST /api/v1/dlq/:task_id/replay': about('operator', async (stand) => ({
    path: `/dlq/${await stand.deadLetterId()}/replay`,
    body: {},
  })),
  'POST /api/v1/queues/:name/pause': about('operator', async () => ({
    path: `/queues/${queue}/pause`,
    body: {},
  })),
  'POST /api/v1/queues/:name/resume': about('operator', async () => ({
    path: `/queues/${queue}/resume`,
    body: {},
  })),
  'POST /api/v1/workers/:worker_id/drain': about('operator', async (stand) => ({
    path: `/workers/${await stand.workerId()}/drain`,
    body: {},
  })),

  'PUT /api/v1/queues/:name': about('admin', async () => ({
    path: `/queues/${queue}`,
    body: { max_concurrency: 3 },
  })),
  'PATCH /api/v1/queues/:name': about('admin', async () => ({
    path: `/queues/${queue}`,
    body: { max_concurrency: 4 },
  })),
  'PUT /api/v1/limits/:name': about('admin', async () => ({
    path: `/limits/${newName()}`,
    body: { unit: 'requests', rate: 10, per_seconds: 1 },
  })),
  'DELETE /api/v1/limits/:name': about('admin', async (stand) => ({
    path: `/limits/${await stand.limit()}`,
  })),
  'PUT /api/v1/alerts/:name': about('admin', async () => ({
    path: '/alerts/queue_depth',
    body: { threshold: 5_000 },
  })),
  'POST /api/v1/alerts/:name/silence': about('admin', async () => ({
    path: '/alerts/queue_depth/silence',
    body: { seconds: 60 },
  })),
  'GET /api/v1/keys': about('admin', async () => ({ path: '/keys' })),
  'POST /api/v1/keys': about('admin', async () => ({
    path: '/keys',
    body: { name: newName(), scopes: ['read'] },
  })),
  'DELETE /api/v1/keys/:key_id': about('admin', async (stand) => ({
    path: `/keys/${(await stand.session()).keyId}`,
  })),
  'GET /api/v1/keys/:key_id/sessions': about('admin', async (stand) => ({
    path: `/keys/${(await stand.session()).keyId}/sessions`,
  })),
  'DELETE /api/v1/keys/:key_id/sessions/:session_id': about('admin', async (stand) => {
    const { keyId, sessionId } = await stand.session();
    return { path: `/keys/${keyId}/sessions/${sessionId}` };
  }),
  'GET /api/v1/audit': about('admin', async () => ({ path: '/audit' })),
};

export function nameOf({ method, path }: ScopedRoute): string {
  return `${method} ${path}`;
}

/** A HEAD route comes with each GET route and has its scope. */
export function isApiRoute({ method, path }: ScopedRoute): boolean {
  return method !== 'HEAD' && path.startsWith('/api/v1/');
}

/** Below the place where the dashboard is mounted. */
export async function callFor(name: string, stand: MountedStand): Promise<Call> {
  const [method = 'GET'] = name.split(' ');
  const call = await actions[name]?.prepare(stand);
  if (call === undefined) throw new Error(`${name} is not in the table of actions`);
  return { ...call, method, path: `/api/v1${call.path}` };
}

function about(least: Role, prepare: Action['prepare']): Action {
  return { least, prepare };
}

function read(path: string): Action {
  return about('read', async () => ({ path }));
}

function readTask(path: string): Action {
  return about('read', async (stand) => ({ path: `/tasks/${await stand.taskId()}${path}` }));
}

function newName(): string {
  return `made-${randomUUID().slice(0, 8)}`;
}
