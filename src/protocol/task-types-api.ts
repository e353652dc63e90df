import type { Confinement } from '../domain/confinement.js';
import type { JsonObject } from '../domain/json.js';
import type { Priority } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import type { Page, PageRequest } from './page.js';

/** What a task of this type costs and needs unless its submit says otherwise. */
export interface TaskDefaults {
  readonly queue?: string;
  readonly priority?: Priority;
  readonly capabilities?: readonly string[];
  readonly timeoutSeconds?: number;
  readonly maxRetries?: number;
  readonly cost?: Cost;
}

/** How a worker retries tasks of the type. Delays that a function decides are not told. */
export interface ToldRetryPolicy {
  readonly codes?: Readonly<Record<string, false | number>>;
  readonly delaySeconds?: readonly number[];
}

/** What a worker tells of a task type when it registers. */
export interface TaskTypeDefinition extends TaskDefaults {
  readonly taskType: string;
  /** Workers apply it; it is told for people. */
  readonly retry?: ToldRetryPolicy;
  /** Of the input, as JSON Schema. For people: workers and typed submits check the input. */
  readonly inputSchema?: JsonObject;
}

/** What counts for the submits of a task type. Null: as for any task. */
export interface ListedTaskType {
  readonly taskType: string;
  readonly queue: string | null;
  readonly priority: Priority | null;
  readonly capabilities: readonly string[];
  readonly timeoutSeconds: number | null;
  readonly maxRetries: number | null;
  readonly cost: Cost | null;
  readonly retry: ToldRetryPolicy | null;
  /** Of the code of the worker that defined it. */
  readonly version: string | null;
  /** Since when it counts. */
  readonly definedAt: Date;
  /** When a worker last told it, or lived that handles the type; to the day. */
  readonly seenAt: Date;
  readonly hasInputSchema: boolean;
}

export interface TaskTypeView extends ListedTaskType {
  readonly inputSchema: JsonObject | null;
}

export interface TaskTypeApi {
  listTaskTypes(page?: PageRequest, within?: Confinement): Promise<Page<ListedTaskType>>;
  getTaskType(taskType: string, within?: Confinement): Promise<TaskTypeView>;
}
