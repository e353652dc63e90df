import { Option, type Command } from 'commander';
import type { SluiceApi } from '../protocol/api.js';

export interface RemoteOptions {
  readonly url: string;
  readonly apiKey?: string | undefined;
  readonly json?: boolean;
}

export const defaultUrl = 'http://127.0.0.1:7700';

export function urlOption(): Option {
  return new Option('--url <url>', 'where the server answers')
    .env('SLUICE_URL')
    .default(defaultUrl);
}

/** A flag is seen by whoever lists processes: the variable is the better place. */
export function apiKeyOption(): Option {
  return new Option('--api-key <key>', 'what the server asks for; better in the variable').env(
    'SLUICE_API_KEY',
  );
}

/** Of a command that asks a server: where it is, and whether a program reads the answer. */
export function withRemoteOptions(command: Command): Command {
  return command
    .addOption(urlOption())
    .addOption(apiKeyOption())
    .option('--json', 'the answer as the API gives it, for programs');
}

/** Loads neither a database nor a web server. */
export async function remoteApi({ url, apiKey }: RemoteOptions): Promise<SluiceApi> {
  const { NodeHttpApi } = await import('../client/node-http-api.js');
  return new NodeHttpApi(url, apiKey === undefined || apiKey === '' ? {} : { apiKey });
}
