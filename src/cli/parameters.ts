import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import type { JsonObject } from '../domain/json.js';
import { CliError } from './failure.js';

/** A JSON object: written out, in a file (`@FILE`) or from stdin (`-`). */
export async function readParameters(given: string): Promise<JsonObject> {
  const { where, text } = await read(given);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new CliError(`${where} is not JSON: ${(error as Error).message}.`, {
      next: hint,
      exitCode: 2,
      cause: error,
    });
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as JsonObject;
  }
  throw new CliError(`${where} must be a JSON object.`, { next: hint, exitCode: 2 });
}

const hint = `Write it like --params '{"text":"hello"}', --params @FILE, or --params - for stdin.`;

async function read(given: string): Promise<{ where: string; text: string }> {
  if (given === '-') return { where: '--params from stdin', text: await readAll(process.stdin) };
  if (!given.startsWith('@')) return { where: '--params', text: given };
  const file = given.slice(1);
  try {
    return { where: file, text: await readFile(file, 'utf8') };
  } catch (error) {
    throw new CliError(`--params can't read ${file}: ${(error as Error).message}`, {
      exitCode: 2,
      cause: error,
    });
  }
}
