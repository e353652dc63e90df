import { readFile } from 'node:fs/promises';
import { Option, type Command, type OptionValues } from 'commander';
import {
  checkAddress,
  checkServeConfig,
  serveSettings,
  type ConfigSources,
  type ServeConfig,
} from '../runtime/config.js';
import { CliError } from './failure.js';
import { urlOf } from './server-url.js';

const defaultFile = 'sluice.config.json';

/** The settings that say which database: all that some commands need. */
export function withDatabaseOptions(command: Command): Command {
  return command
    .option('--data <folder>', serveSettings.data.meaning)
    .option('--database-url <url>', serveSettings.databaseUrl.meaning)
    .option('--config <file>', `settings as JSON (default: ${defaultFile}, if there is one)`);
}

/** For commands that speak to Redis as well. */
export function withRedisOption(command: Command): Command {
  return command.option('--redis-url <url>', serveSettings.redisUrl.meaning);
}

/** From the command line, the environment and the file; throws one message with all problems. */
export async function loadServeConfig(command: Command): Promise<ServeConfig> {
  const spoken = spokenOptions(command);
  const { config: path } = spoken;
  const file = await readConfigFile(typeof path === 'string' ? path : null);
  const checked = checkServeConfig({ flags: bySetting(spoken), env: process.env, file });
  if (checked.kind === 'valid') return checked.config;
  throw invalid(checked.problems);
}

/** Where the server of this folder answers, by the environment and the file. */
export async function loadServerUrl(): Promise<string> {
  const file = await readConfigFile(null);
  const { host, port, problems } = checkAddress({ flags: {}, env: process.env, file });
  if (problems.length > 0) throw invalid(problems);
  return urlOf(host, port);
}

function invalid(problems: readonly string[]): CliError {
  const lines = problems.map((problem) => `  - ${problem}`);
  return new CliError(['The settings are not valid:', ...lines].join('\n'), { exitCode: 2 });
}

/** Not the defaults of commander: whether somebody said it decides who wins. */
function spokenOptions(command: Command): OptionValues {
  const spoken = Object.entries(command.opts()).filter(
    ([name]) => command.getOptionValueSource(name) === 'cli',
  );
  return Object.fromEntries(spoken);
}

/** A flag may have another name than its setting: it says its unit. */
function bySetting(spoken: OptionValues): ConfigSources['flags'] {
  const flags = Object.entries(serveSettings).map(([name, { flag }]) => [
    name,
    flag === null ? undefined : (spoken[new Option(flag).attributeName()] as unknown),
  ]);
  return Object.fromEntries(flags) as ConfigSources['flags'];
}

async function readConfigFile(path: string | null): Promise<ConfigSources['file']> {
  const name = path ?? defaultFile;
  let content: string;
  try {
    content = await readFile(name, 'utf8');
  } catch (error) {
    if (path === null && (error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new CliError(`${name} can't be read: ${(error as Error).message}`, {
      exitCode: 2,
      cause: error,
    });
  }
  return { path: name, values: parseConfigFile(name, content) };
}

function parseConfigFile(name: string, content: string): Readonly<Record<string, unknown>> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(content);
  } catch (error) {
    throw new CliError(`${name} is not JSON: ${(error as Error).message}`, {
      exitCode: 2,
      cause: error,
    });
  }
  if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) {
    return parsed as Readonly<Record<string, unknown>>;
  }
  throw new CliError(`${name} must hold a JSON object of settings`, { exitCode: 2 });
}
