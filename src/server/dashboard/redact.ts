import { SluiceError } from '../../domain/errors.js';
import type { JsonObject, JsonValue } from '../../domain/json.js';
import type { SluiceApi } from '../../protocol/api.js';
import type { ListedTask, Receipt, TaskView } from '../../protocol/tasks-api.js';

export interface Redacted {
  /** `progress`: the message that a handler gave with its progress. */
  readonly field: 'parameters' | 'result' | 'error' | 'progress';
  readonly taskId: string;
  readonly taskType: string;
  readonly queue: string;
}

/** What the dashboard shows instead of a value. */
export type Redact = (value: JsonValue, about: Redacted) => JsonValue;

const hidden = '[hidden]';
export const hideAll: Redact = () => hidden;

/** The same API, whose tasks hold what `redact` leaves of them. */
export function redacting(api: SluiceApi, redact: Redact): SluiceApi {
  const one = <Task extends TaskView | ListedTask>(task: Task): Task => redactTask(task, redact);
  const overridden: Partial<SluiceApi> = {
    getTask: async (...given) => one(await api.getTask(...given)),
    waitForTask: async (...given) => one(await api.waitForTask(...given)),
    replayTask: async (...given) => one(await api.replayTask(...given)),
    changeTask: async (...given) => redactChanged(await api.changeTask(...given), one),
    listTasks: async (...given) => {
      if (given[0].text !== undefined) throw searchesHidden();
      const page = await api.listTasks(...given);
      return { ...page, items: page.items.map(one) };
    },
    listDeadLetters: async (...given) => {
      const page = await api.listDeadLetters(...given);
      return { ...page, items: page.items.map(one) };
    },
    listPushbacks: async (...given) => {
      const page = await api.listPushbacks(...given);
      const items = page.items.map((pushback) => {
        const { taskId, taskType, queue, message } = pushback;
        const about = { field: 'error', taskId, taskType, queue } as const;
        return { ...pushback, message: textOf(redact(message, about)) };
      });
      return { ...page, items };
    },
    analyseDeadLetters: async (...given) =>
      (await api.analyseDeadLetters(...given)).map((pattern) => {
        const { queues, taskType, example, message } = pattern;
        const queue = queues[0]?.queue ?? '';
        const about = { field: 'error', taskId: example.taskId, taskType, queue } as const;
        return {
          ...pattern,
          message: message === null ? null : textOf(redact(message, about)),
          example: { ...example, message: textOf(redact(example.message, about)) },
        };
      }),
  };
  return new Proxy(api, {
    get: (target, name): unknown =>
      Reflect.get(overridden, name) ?? (Reflect.get(target, name) as unknown),
  });
}

/** Who may not see parameters could find out what they hold, a character at a time. */
function searchesHidden(): SluiceError {
  const detail = 'This dashboard hides parameters, so it does not search for text in them.';
  return new SluiceError('forbidden', detail);
}

function redactChanged(changed: TaskView | Receipt, one: (task: TaskView) => TaskView) {
  return 'parameters' in changed ? one(changed) : changed;
}

function redactTask<Task extends TaskView | ListedTask>(task: Task, redact: Redact): Task {
  const { taskId, taskType, queue, parameters, result, error, progress } = task;
  const say = (field: Redacted['field'], value: JsonValue) =>
    redact(value, { field, taskId, taskType, queue });
  const sayError = <Failure extends NonNullable<TaskView['error']>>(failure: Failure): Failure => ({
    ...failure,
    message: textOf(say('error', failure.message)),
    ...(failure.details === undefined ? {} : { details: say('error', failure.details) }),
  });
  const sayMessage = (message: string | null) =>
    message === null ? null : textOf(say('progress', message));
  const { history } = task;
  return {
    ...task,
    ...(parameters === undefined ? {} : { parameters: objectOf(say('parameters', parameters)) }),
    ...(result === undefined || result === null ? {} : { result: say('result', result) }),
    error: error === null ? null : sayError(error),
    progress: progress === null ? null : { ...progress, message: sayMessage(progress.message) },
    ...(history === undefined
      ? {}
      : {
          history: {
            ...history,
            attempts: history.attempts.map((attempt) =>
              attempt.error === undefined
                ? attempt
                : { ...attempt, error: sayError(attempt.error) },
            ),
          },
        }),
  };
}

function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Parameters are an object on the wire. */
function objectOf(value: JsonValue): JsonObject {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as JsonObject) : { redacted: value };
}
