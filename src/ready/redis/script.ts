import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { constants } from './constants.js';

/** A Lua script: `lua/<name>.lua` with the parts that it includes. */
export interface Script {
  readonly name: string;
  readonly text: string;
  /** How Redis knows it once it has seen the text. */
  readonly sha: string;
}

const folder = new URL('./lua/', import.meta.url);

const includeLine = /^-- include: (.+)$/gm;

/**
 * A line `-- include: windows heap` stands for the files `parts/windows.lua` and `parts/heap.lua`, with what those include.
 * Each part is put in once, where it is first included. All texts begin with the constants.
 */
export function loadScript(name: string): Script {
  const text = constants + withParts(read(name), new Set());
  return { name, text, sha: createHash('sha1').update(text).digest('hex') };
}

function withParts(text: string, included: Set<string>): string {
  return text.replaceAll(includeLine, (_, names: string) =>
    names
      .split(' ')
      .map((name) => {
        if (included.has(name)) return '';
        included.add(name);
        return withParts(read(`parts/${name}`), included);
      })
      .join(''),
  );
}

function read(name: string): string {
  return readFileSync(new URL(`${name}.lua`, folder), 'utf8');
}
