// One connection that is kept, and one call at a time on it. By hand: a client that does more takes
// the time of the server it is to load, on the same machine.
import { connect } from 'node:net';
import { URL } from 'node:url';

const endOfHead = '\r\n\r\n';
/** A server closes what nobody used for as long as it says: a call just then would be lost. */
const sparedMs = 2_000;

export class Lane {
  #url;
  #socket = null;
  #text = '';
  #answered = null;
  #usableUntilMs = Infinity;

  constructor(url) {
    this.#url = new URL(url);
  }

  /** `onAnswer(status, head)`, or `onAnswer(0, reason)` when there was none. */
  call(request, onAnswer) {
    this.#answered = onAnswer;
    if (performance.now() > this.#usableUntilMs) this.#leave();
    this.#socket ??= this.#open();
    this.#socket.write(request);
  }

  close() {
    this.#answered = null;
    this.#socket?.destroy();
  }

  #open() {
    const socket = connect({ host: this.#url.hostname, port: Number(this.#url.port) });
    socket.setNoDelay(true);
    socket.setEncoding('latin1');
    socket.on('data', (text) => this.#read(text));
    socket.on('error', ({ code }) => this.#lost(socket, code));
    socket.on('close', () => this.#lost(socket, 'closed'));
    return socket;
  }

  #read(text) {
    this.#text += text;
    const headEnds = this.#text.indexOf(endOfHead);
    if (headEnds === -1) return;
    const head = this.#text.slice(0, headEnds).toLowerCase();
    const [, length = '0'] = /\r\ncontent-length: (\d+)/.exec(head) ?? [];
    if (this.#text.length < headEnds + endOfHead.length + Number(length)) return;
    this.#text = '';
    const [, keptSeconds = Infinity] = /\r\nkeep-alive: timeout=(\d+)/.exec(head) ?? [];
    this.#usableUntilMs = performance.now() + Number(keptSeconds) * 1000 - sparedMs;
    if (head.includes('\r\nconnection: close')) this.#leave();
    this.#answer(Number(head.slice(9, 12)), head);
  }

  /** The other side closes it, or has done so. */
  #leave() {
    this.#socket?.end();
    this.#socket = null;
    this.#usableUntilMs = Infinity;
  }

  #lost(socket, reason) {
    if (this.#socket !== socket) return;
    this.#socket = null;
    this.#text = '';
    this.#answer(0, reason);
  }

  #answer(status, head) {
    const answered = this.#answered;
    this.#answered = null;
    answered?.(status, head);
  }
}

/** Without a body it is a GET. */
export function requestText({ url, path, body, headers = {} }) {
  const text = body === undefined ? '' : JSON.stringify(body);
  const ofBody =
    body === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': String(text.length) };
  const lines = Object.entries({ host: new URL(url).host, ...ofBody, ...headers });
  const method = body === undefined ? 'GET' : 'POST';
  return [
    `${method} ${path} HTTP/1.1`,
    ...lines.map(([name, value]) => `${name}: ${value}`),
    '',
    text,
  ].join('\r\n');
}
