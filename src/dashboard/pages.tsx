import type { ComponentChildren } from 'preact';
import { Empty } from './components/bits.js';
import { AlertsPage } from './pages/alerts.js';
import { AuditPage } from './pages/audit.js';
import { DeadLettersPage } from './pages/dead-letters.js';
import { KeysPage } from './pages/keys.js';
import { OverviewPage } from './pages/overview.js';
import { QueuePage } from './pages/queue.js';
import { QueuesPage } from './pages/queues.js';
import { TaskPage } from './pages/task.js';
import { TasksPage } from './pages/tasks.js';
import { WorkerPage, WorkersPage } from './pages/workers.js';

interface Shown {
  readonly title: string;
  readonly page: ComponentChildren;
}

export function pageOf([section = '', name]: readonly string[]): Shown {
  switch (section) {
    case '':
      return { title: 'Overview', page: <OverviewPage /> };
    case 'queues':
      return name === undefined
        ? { title: 'Queues', page: <QueuesPage /> }
        : { title: name, page: <QueuePage key={name} name={name} /> };
    case 'tasks':
      return name === undefined
        ? { title: 'Tasks', page: <TasksPage /> }
        : { title: `Task ${name.slice(0, 8)}`, page: <TaskPage key={name} id={name} /> };
    case 'workers':
      return name === undefined
        ? { title: 'Workers', page: <WorkersPage /> }
        : { title: `Worker ${name.slice(0, 8)}`, page: <WorkerPage key={name} id={name} /> };
    case 'dead-letters':
      return { title: 'Dead letters', page: <DeadLettersPage /> };
    case 'alerts':
      return { title: 'Alerts', page: <AlertsPage /> };
    case 'keys':
      return { title: 'API keys', page: <KeysPage /> };
    case 'audit':
      return { title: 'Audit', page: <AuditPage /> };
    default:
      return {
        title: 'Not found',
        page: <Empty title="There is no such page." />,
      };
  }
}
