import type { LabDatabase } from '../../lab/shared/database.js';
import { parentOf, ProcessTree } from '../../lab/shared/process-tree.js';

/** Of a server that DATABASE_URL names nothing is told: it may be on another machine. */
export async function postgresProcesses(database: LabDatabase): Promise<ProcessTree> {
  if (process.env.DATABASE_URL) return new ProcessTree(null);
  const [row] = await database.query<{ pid: number }>('select pg_backend_pid() as pid');
  return new ProcessTree(parentOf(row?.pid ?? 0));
}
