import { Option, type Command } from 'commander';
import type { SluiceApi } from '../protocol/api.js';
import { loadServerUrl } from './serve-config.js';
import { defaultUrl } from './server-url.js';

export interface RemoteOptions {
  readonly url: string;
  readonly apiKey?: string | undefined;
  readonly json?: boolean;
}

/** Of a command that talks to a server: where it is, and with which key. */
export function withServerOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--url <url>',
        `where the server answers (host and port in sluice.config.json, else ${defaultUrl})`,
      ).env('SLUICE_URL'),
    )
    .addOption(apiKeyOption())
    .hook('preAction', fillUrl);
}

async function fillUrl(_: Command, command: Command): Promise<void> {
  const { url } = command.opts<{ url?: string }>();
  // An empty variable is how a shell says that there is none.
  if (url !== undefined && url !== '') return;
  command.setOptionValueWithSource('url', await loadServerUrl(), 'config');
}

/** A flag is seen by whoever lists processes: the variable is the better place. */
export function apiKeyOption(): Option {
  return new Option('--api-key <key>', 'what the server asks for; better in the variable').env(
    'SLUICE_API_KEY',
  );
}

/** Of a command that asks a server: also whether a program reads the answer. */
export function withRemoteOptions(command: Command): Command {
  return withServerOptions(command).option(
    '--json',
    'the answer as the API gives it, for programs',
  );
}

/** Loads neither a database nor a web server. */
export async function remoteApi({ url, apiKey }: RemoteOptions): Promise<SluiceApi> {
  const { NodeHttpApi } = await import('../client/node-http-api.js');
  return new NodeHttpApi(url, apiKey === undefined || apiKey === '' ? {} : { apiKey });
}
