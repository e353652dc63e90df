import type { Database, Queryable } from '../../src/store/database.js';

export interface Plan {
  readonly statement: string;
  /** Such as "Index Scan on tasks by tasks_held". */
  readonly scans: readonly string[];
  /** Rows of the tasks that it looked at, whether or not they were wanted. */
  readonly visited: number;
  /** Pages of 8 KiB that it looked at: what it cost, whatever the clock says. */
  readonly pages: number;
  /** Ways that go wrong when a table grows: reading one whole, or joining by hash or merge. */
  readonly faults: readonly string[];
  /** Conditions that rows are tested for one by one. */
  readonly filters: readonly string[];
  /** Partitions that it really looked into. */
  readonly partitions: readonly string[];
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly 'TID Cond'?: string;
  readonly Filter?: string;
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

/**
 * Does what the database does, and keeps the plan that each statement ran with: one made for its
 * parameters, or the one for any parameters that a prepared statement ends up with.
 */
export function explained(
  db: Database,
  made: 'for its parameters' | 'for any parameters' = 'for its parameters',
): { readonly db: Database; readonly plans: Plan[] } {
  const plans: Plan[] = [];
  const explain = made === 'for any parameters' ? explainPrepared : explainAsItIs;
  const explaining = (connection: Queryable): Queryable => ({
    query: async <Row>(text: string, parameters?: readonly unknown[]) => {
      await connection.run('savepoint before_plan');
      const row = await explain(connection, text, parameters);
      await connection.run('rollback to savepoint before_plan');
      const root = row?.['QUERY PLAN'][0]?.Plan;
      if (root === undefined) throw new Error(`no plan for ${text}`);
      const pages = root['Shared Hit Blocks'] + root['Shared Read Blocks'];
      plans.push({
        statement: text,
        scans: scansOf(root),
        visited: visitedBy(root),
        pages,
        faults: faultsOf(root),
        filters: filtersOf(root),
        partitions: partitionsOf(root),
      });
      return connection.query<Row>(text, parameters);
    },
    run: (script) => connection.run(script),
  });
  const transaction: Database['transaction'] = (work) =>
    db.transaction((connection) => work(explaining(connection)));
  const query: Database['query'] = (text, parameters) =>
    transaction((connection) => connection.query(text, parameters));
  const one = { query, run: (script: string) => db.run(script) };
  return { db: { ...db, ...one, vital: one, reads: one, ordered: { query }, transaction }, plans };
}

const explanation = 'explain (analyze, buffers, format json)';

async function explainAsItIs(
  connection: Queryable,
  text: string,
  parameters: readonly unknown[] = [],
): Promise<ExplainRow | undefined> {
  const [row] = await connection.query<ExplainRow>(`${explanation} ${text}`, parameters);
  return row;
}

async function explainPrepared(
  connection: Queryable,
  text: string,
  parameters: readonly unknown[] = [],
): Promise<ExplainRow | undefined> {
  await connection.run(`set local plan_cache_mode = force_generic_plan; prepare plan as ${text}`);
  const values = parameters.map(literal).join(', ');
  const execution = parameters.length === 0 ? 'execute plan' : `execute plan (${values})`;
  const [row] = await connection.query<ExplainRow>(`${explanation} ${execution}`);
  await connection.run('deallocate plan');
  return row;
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  return `'${(Array.isArray(value) ? arrayText(value) : text(value)).replaceAll("'", "''")}'`;
}

function arrayText(values: readonly unknown[]): string {
  const quoted = (value: unknown): string => `"${text(value).replaceAll(/["\\]/g, '\\$&')}"`;
  return `{${values.map((value) => (value === null ? 'null' : quoted(value))).join(',')}}`;
}

function text(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  return Buffer.isBuffer(value) ? `\\x${value.toString('hex')}` : String(value);
}

const guarded = /^(tasks|task_inputs|task_history|idempotency_keys|workflows)(_\d+)?$/;

function faultsOf(node: PlanNode, parent?: PlanNode): string[] {
  const below = (node.Plans ?? []).flatMap((child) => faultsOf(child, node));
  const type = node['Node Type'];
  const relation = node['Relation Name'] ?? '';
  if (/^(Hash|Merge) Join/.test(type)) return [type, ...below];
  if (!guarded.test(relation) || !type.includes('Scan')) return below;
  const isBounded =
    node['Index Cond'] !== undefined ||
    node['TID Cond'] !== undefined ||
    type === 'Bitmap Heap Scan' ||
    // The first entries of an index, in its order.
    (type.startsWith('Index') && parent?.['Node Type'] === 'Limit');
  return isBounded ? below : [`${type} of all of ${relation}`, ...below];
}

function filtersOf(node: PlanNode): string[] {
  const below = (node.Plans ?? []).flatMap(filtersOf);
  return node.Filter === undefined ? below : [node.Filter, ...below];
}

function partitionsOf(node: PlanNode): string[] {
  const below = (node.Plans ?? []).flatMap(partitionsOf);
  const relation = node['Relation Name'] ?? '';
  const isRead = node['Node Type'].includes('Scan') && node['Actual Loops'] > 0;
  return isRead && /_\d{8}$/.test(relation) ? [relation, ...below] : below;
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
