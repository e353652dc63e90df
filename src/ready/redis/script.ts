import { createHash } from 'node:crypto';

/** A Lua script: what it shares with others first, then its own part. */
export interface Script {
  readonly name: string;
  readonly text: string;
  /** How Redis knows it once it has seen the text. */
  readonly sha: string;
}

export function script(name: string, ...parts: readonly string[]): Script {
  const text = parts.join('');
  return { name, text, sha: createHash('sha1').update(text).digest('hex') };
}
