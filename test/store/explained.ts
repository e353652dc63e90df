import type { Database, Queryable } from '../../src/store/database.js';

export interface Plan {
  readonly statement: string;
  /** Such as "Index Scan on tasks by tasks_held". */
  readonly scans: readonly string[];
  /** Rows of the tasks that it looked at, whether or not they were wanted. */
  readonly visited: number;
  /** Pages of 8 KiB that it looked at: what it cost, whatever the clock says. */
  readonly pages: number;
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

interface ExplainRow {
  readonly 'QUERY PLAN': readonly { readonly Plan: PlanNode }[];
}

/** Does what the database does, and keeps the plan that each statement ran with. */
export function explained(db: Database): { readonly db: Database; readonly plans: Plan[] } {
  const plans: Plan[] = [];
  const explaining = (connection: Queryable): Queryable => ({
    query: async <Row>(text: string, parameters?: readonly unknown[]) => {
      await connection.run('savepoint before_plan');
      const [row] = await connection.query<ExplainRow>(
        `explain (analyze, buffers, format json) ${text}`,
        parameters,
      );
      await connection.run('rollback to savepoint before_plan');
      const root = row?.['QUERY PLAN'][0]?.Plan;
      if (root === undefined) throw new Error(`no plan for ${text}`);
      const pages = root['Shared Hit Blocks'] + root['Shared Read Blocks'];
      plans.push({ statement: text, scans: scansOf(root), visited: visitedBy(root), pages });
      return connection.query<Row>(text, parameters);
    },
    run: (script) => connection.run(script),
  });
  const transaction: Database['transaction'] = (work) =>
    db.transaction((connection) => work(explaining(connection)));
  const query: Database['query'] = (text, parameters) =>
    transaction((connection) => connection.query(text, parameters));
  return { db: { ...db, query, transaction }, plans };
}

function scansOf(node: PlanNode): string[] {
  const below = (node.Plans ?? []).flatMap(scansOf);
  const relation = node['Relation Name'];
  const index = node['Index Name'];
  const where = relation ?? index;
  if (where === undefined || !node['Node Type'].includes('Scan')) return below;
  const by = relation !== undefined && index !== undefined ? ` by ${index}` : '';
  return [`${node['Node Type']} on ${where}${by}`, ...below];
}

function visitedBy(node: PlanNode): number {
  const below = (node.Plans ?? []).reduce((sum, child) => sum + visitedBy(child), 0);
  if (node['Relation Name'] !== 'tasks' || !node['Node Type'].includes('Scan')) return below;
  const removed =
    (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
  return below + (node['Actual Rows'] + removed) * node['Actual Loops'];
}
