import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface ModelProviderOptions {
  readonly answerMs?: number;
  /**
   * Counted as Anthropic says that it does: by a bucket that is refilled all the time, and that holds
   * no more than what a second allows.
   */
  readonly requestsPerMinute?: number;
}

export interface ModelProvider extends AsyncDisposable {
  /** For Anthropic's SDK; with /v1 for OpenAI's. */
  readonly url: string;
  /** Answers by their status. */
  readonly counts: Readonly<Record<number, number>>;
  /** Every call gets this answer from now on; null: as the prompt says. */
  answerAll(answer: StandInAnswer | null): void;
}

/** `code` in the body as OpenAI has it, `type` as both have it. */
export interface StandInAnswer {
  readonly status: number;
  readonly code?: string;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const fine: StandInAnswer = { status: 200 };

/**
 * Stands in for OpenAI and Anthropic, without the bill. It answers what the prompt says, if that is
 * JSON as `{ "status": 429, "code": "insufficient_quota" }`, else a completion.
 */
export async function startModelProvider(
  options: ModelProviderOptions = {},
): Promise<ModelProvider> {
  const { answerMs = 0, requestsPerMinute = Infinity } = options;
  const counts: Record<number, number> = {};
  const allow = createBucket(requestsPerMinute);
  let forAll: StandInAnswer | null = null;
  const server = createServer((request, response) => {
    void readPrompt(request).then(async (prompt) => {
      const asked = forAll ?? allow() ?? answerIn(prompt);
      counts[asked.status] = (counts[asked.status] ?? 0) + 1;
      if (asked.status === 200) await delay(answerMs);
      response.writeHead(asked.status, { 'content-type': 'application/json', ...asked.headers });
      response.end(JSON.stringify(bodyOf(asked, request.url ?? '')));
    });
  });
  // A client keeps its connections; one that is closed under it would fail a task.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    counts,
    answerAll: (answer) => {
      forAll = answer;
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Null: it is within the limit. */
function createBucket(perMinute: number): () => StandInAnswer | null {
  const capacity = perMinute / 60;
  let level = capacity;
  let atMs = performance.now();
  return () => {
    if (perMinute === Infinity) return null;
    const nowMs = performance.now();
    level = Math.min(capacity, level + ((nowMs - atMs) * capacity) / 1_000);
    atMs = nowMs;
    if (level < 1) return { status: 429, code: 'rate_limit_exceeded', type: 'requests' };
    level -= 1;
    return null;
  };
}

function answerIn(prompt: string): StandInAnswer {
  return prompt.startsWith('{') ? (JSON.parse(prompt) as StandInAnswer) : fine;
}

function bodyOf({ status, code = null, type = 'stand_in' }: AnswerParts, path: string): object {
  const isAnthropic = path.endsWith('/messages');
  const message = `The stand-in answers ${status}`;
  if (status !== 200) {
    return isAnthropic
      ? { type: 'error', error: { type, message } }
      : { error: { message, type, param: null, code } };
  }
  return isAnthropic
    ? { id: 'm', type: 'message', role: 'assistant', content: [{ type: 'text', text: 'yes' }] }
    : { choices: [{ index: 0, message: { role: 'assistant', content: 'yes' } }] };
}

interface AnswerParts extends Omit<StandInAnswer, 'code'> {
  readonly code?: string | null;
}

/** The last message. */
async function readPrompt(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  if (text === '') return '';
  const { messages } = JSON.parse(text) as { messages: { content: string }[] };
  return messages.at(-1)?.content ?? '';
}
