import type { Priority } from '../../src/domain/priority.js';

/** What a submit over HTTP was answered. */
export interface Answer {
  readonly status: number;
  /** In seconds; null: not said. */
  readonly retryAfter: number | null;
  readonly body: Readonly<Record<string, unknown>>;
}

/** All at the same time, at the servers by turns. */
export function submitAtOnce(
  urls: readonly string[],
  length: number,
  priority: Priority,
  stepMs: number,
): Promise<Answer[]> {
  const body = JSON.stringify({ task_type: 'step', priority, parameters: { ms: stepMs } });
  return Promise.all(
    Array.from({ length }, async (_, index) => {
      const url = urls[index % urls.length] ?? '';
      const response = await fetch(`${url}/api/v1/tasks`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      const retryAfter = response.headers.get('retry-after');
      return {
        status: response.status,
        retryAfter: retryAfter === null ? null : Number(retryAfter),
        body: (await response.json()) as Answer['body'],
      };
    }),
  );
}

export const isAccepted = ({ status }: Answer): boolean => status === 201;

/** 429, and it says when to come again. */
export const isRefused = ({ status, retryAfter }: Answer): boolean =>
  status === 429 && retryAfter !== null && retryAfter >= 1;

export function countOf(answers: readonly Answer[], is: (answer: Answer) => boolean): number {
  return answers.filter(is).length;
}
