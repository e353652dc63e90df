import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { TaskHandler } from '../worker/handler.js';
import { CliError } from './failure.js';

/** The task definitions that a module exports: alone, or in an array. */
export async function loadTaskDefinitions(file: string): Promise<readonly TaskHandler[]> {
  const exported = Object.values(await importModule(resolve(file))).flat();
  const definitions = [...new Set(exported.filter(isTaskDefinition))];
  if (definitions.length > 0) return definitions;
  throw new CliError(`${file} exports no task definitions.`, {
    next: 'Export what defineTask() answers: export const summarize = defineTask({ … });',
  });
}

function isTaskDefinition(value: unknown): value is TaskHandler {
  if (typeof value !== 'object' || value === null) return false;
  const { type, run } = value as Partial<TaskHandler>;
  return typeof type === 'string' && typeof run === 'function';
}

async function importModule(path: string): Promise<Readonly<Record<string, unknown>>> {
  if (!existsSync(path)) throw new CliError(`There is no file ${path}.`);
  if (isTypeScript(path) && !isLoadedByTsx()) await installTsx(path);
  try {
    return (await import(pathToFileURL(path).href)) as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw new CliError(`${path} could not be loaded: ${(error as Error).message}`, {
      next: 'SLUICE_DEBUG=1 shows where.',
      cause: error,
    });
  }
}

function isTypeScript(path: string): boolean {
  return /\.[mc]?tsx?$/.test(path);
}

/** Newer versions take the types off by themselves, but don't find a.ts when it is named a.js. */
function nodeCanStripTypes(): boolean {
  const features = process.features as { typescript?: string | false };
  return typeof features.typescript === 'string';
}

function isLoadedByTsx(): boolean {
  return import.meta.url.endsWith('.ts');
}

/** The user's own tsx if there is one, since it understands more; importing it installs it. */
async function installTsx(path: string): Promise<void> {
  let tsx: string;
  try {
    tsx = createRequire(path).resolve('tsx');
  } catch (error) {
    if (nodeCanStripTypes()) return;
    throw new CliError(
      `${path} is TypeScript, which Node ${process.versions.node} can't load by itself.`,
      {
        next: 'Install tsx beside it (npm install --save-dev tsx), use Node 22.18 or later, or name compiled JavaScript.',
        cause: error,
      },
    );
  }
  await import(pathToFileURL(tsx).href);
}
