import { emitKeypressEvents } from 'node:readline';

export interface Key {
  readonly name?: string | undefined;
  readonly ctrl?: boolean | undefined;
}

const enterAlternateScreen = '\x1b[?1049h\x1b[?25l';
const leaveAlternateScreen = '\x1b[?25h\x1b[?1049l';
const home = '\x1b[H';
const eraseToEndOfLine = '\x1b[K';
const eraseBelow = '\x1b[J';

/** A screen of its own, which leaves the terminal as it was, however the process ends. */
export class Terminal {
  readonly #onKey: (key: Key) => void;
  readonly #onResize: () => void;

  constructor(on: { readonly key: (key: Key) => void; readonly resize: () => void }) {
    this.#onKey = on.key;
    this.#onResize = on.resize;
  }

  /** A terminal that does not know its size says 0. */
  get width(): number {
    return process.stdout.columns || 80;
  }

  get height(): number {
    return process.stdout.rows || 24;
  }

  open(): void {
    process.stdout.write(enterAlternateScreen);
    process.stdout.on('resize', this.#onResize);
    process.on('exit', restoreScreen);
    if (!process.stdin.isTTY) return;
    emitKeypressEvents(process.stdin);
    process.stdin.setRawMode(true).resume();
    process.stdin.on('keypress', this.#noteKey);
  }

  close(): void {
    process.stdout.off('resize', this.#onResize);
    process.off('exit', restoreScreen);
    if (process.stdin.isTTY) {
      process.stdin.off('keypress', this.#noteKey);
      process.stdin.setRawMode(false).pause();
    }
    restoreScreen();
  }

  /** Each line over the one that stood there: to clear the screen first would flicker. */
  draw(lines: readonly string[]): void {
    const text = lines.map((line) => `${line}${eraseToEndOfLine}`).join('\r\n');
    process.stdout.write(`${home}${text}${eraseBelow}`);
  }

  readonly #noteKey = (_text: string | undefined, key: Key): void => {
    this.#onKey(key);
  };
}

function restoreScreen(): void {
  process.stdout.write(leaveAlternateScreen);
}
