export interface SubmitAnswer {
  readonly taskId: string | null;
  readonly status: number;
  readonly hasRetryAfter: boolean;
  readonly tookMs: number;
}

export async function submitOnce(url: string, body: object): Promise<SubmitAnswer> {
  const beganMs = performance.now();
  const response = await fetch(`${url}/api/v1/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const { task_id: taskId = null } = (await response.json()) as { readonly task_id?: string };
  return {
    taskId,
    status: response.status,
    hasRetryAfter: response.headers.has('retry-after'),
    tookMs: performance.now() - beganMs,
  };
}

export interface Tally {
  readonly accepted: number;
  /** 503 with Retry-After. */
  readonly refused: number;
  /** Neither of these, nor 429 with Retry-After, by which a busy server protects itself. */
  readonly others: number;
  readonly slowestMs: number;
}

export function tally(answers: readonly SubmitAnswer[]): Tally {
  const accepted = answers.filter(({ taskId }) => taskId !== null).length;
  const refused = answers.filter(
    ({ status, hasRetryAfter }) => status === 503 && hasRetryAfter,
  ).length;
  const busy = answers.filter(
    ({ status, hasRetryAfter }) => status === 429 && hasRetryAfter,
  ).length;
  return {
    accepted,
    refused,
    others: answers.length - accepted - refused - busy,
    slowestMs: Math.max(0, ...answers.map(({ tookMs }) => tookMs)),
  };
}
