import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface ChatServiceOptions {
  /** Evenly: what comes sooner after the one before is answered 429, with Retry-After. */
  readonly requestsPerSecond: number;
  /** The first time it is seen, every so-many-th prompt is answered 500. */
  readonly failEvery: number;
  /** A longer prompt is answered 400. */
  readonly maxPromptTokens?: number;
  readonly answerMs?: number;
}

export interface ChatCounts {
  /** 200. */
  answered: number;
  /** 400. */
  refused: number;
  /** 429. */
  rateLimited: number;
  /** 500. */
  failed: number;
  /** The sum of `usage.total_tokens`. */
  tokens: number;
}

export interface ChatService extends AsyncDisposable {
  /** What OPENAI_BASE_URL would be. */
  readonly url: string;
  readonly counts: Readonly<ChatCounts>;
}

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: object;
}

/** Stands in for a service that speaks OpenAI's `POST /v1/chat/completions`, without the bill. */
export async function startChatService(options: ChatServiceOptions): Promise<ChatService> {
  const { answerMs = 50 } = options;
  const counts: ChatCounts = { answered: 0, refused: 0, rateLimited: 0, failed: 0, tokens: 0 };
  const judge = createJudge(options, counts);
  const server = createServer((request, response) => {
    void readPrompt(request).then(async (prompt) => {
      const { status, headers, body } = judge(prompt, performance.now());
      if (status === 200) await delay(answerMs);
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(body));
    });
  });
  // A client keeps its connections; one that is closed under it would fail a task.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    counts,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type Judge = (prompt: string | null, nowMs: number) => Answer;

function createJudge(options: ChatServiceOptions, counts: ChatCounts): Judge {
  const { requestsPerSecond, failEvery, maxPromptTokens = 8_000 } = options;
  const seen = new Set<string>();
  let nextAtMs = 0;
  return (prompt, nowMs) => {
    if (prompt === null || tokensOf(prompt) > maxPromptTokens) {
      counts.refused += 1;
      return problem(400, 'No messages, or more than the model can read');
    }
    if (nowMs < nextAtMs) {
      counts.rateLimited += 1;
      const seconds = Math.ceil((nextAtMs - nowMs) / 1000);
      return { ...problem(429, 'Slow down'), headers: { 'retry-after': String(seconds) } };
    }
    nextAtMs = nowMs + 1000 / requestsPerSecond;
    if (!seen.has(prompt) && seen.add(prompt).size % failEvery === 0) {
      counts.failed += 1;
      return problem(500, 'The server had an error');
    }
    const body = completion(prompt);
    counts.answered += 1;
    counts.tokens += body.usage.total_tokens;
    return { status: 200, body };
  };
}

function completion(prompt: string) {
  const content = `${prompt.trim().split(/\s+/).slice(0, 12).join(' ')} …`;
  const promptTokens = tokensOf(prompt);
  const completionTokens = tokensOf(content);
  return {
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
  };
}

function problem(status: number, message: string): Answer {
  return { status, body: { error: { message, type: 'stand_in', code: null } } };
}

/** About what a tokenizer makes of English. */
function tokensOf(text: string): number {
  return Math.ceil(text.length / 4);
}

/** The last message; null when it is not a request for a completion. */
async function readPrompt(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  if (request.method !== 'POST' || request.url !== '/v1/chat/completions') return null;
  try {
    const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as {
      messages: { content: string }[];
    };
    return messages.at(-1)?.content ?? null;
  } catch {
    return null;
  }
}
