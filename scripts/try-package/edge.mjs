// node edge.mjs BUNDLE: runs it with what browsers and edge runtimes have, and nothing of Node.
import { readFileSync } from 'node:fs';
import { createContext, SourceTextModule } from 'node:vm';

const { AbortController, AbortSignal, TextEncoder, URL, URLSearchParams } = globalThis;
const { btoa, clearTimeout, console, fetch, performance, queueMicrotask, setTimeout } = globalThis;
const context = createContext({
  ...{ AbortController, AbortSignal, TextEncoder, URL, URLSearchParams },
  ...{ btoa, clearTimeout, console, fetch, performance, queueMicrotask, setTimeout },
});
const bundle = new SourceTextModule(readFileSync(process.argv[2], 'utf8'), { context });
await bundle.link((name) => {
  throw new Error(`The bundle imports ${name}`);
});
await bundle.evaluate();
