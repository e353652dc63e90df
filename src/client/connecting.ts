import type { ClientApi } from '../protocol/api.js';
import { checkOptions } from '../protocol/options.js';

export interface ConnectOptions {
  readonly apiKey?: string;
}

type ClientClass<Api, Client> = new (api: Api, close: () => Promise<void>) => Client;

/** The `connect` of one entry point of the package: which calls it has and how they are sent, and its client. */
export function connecting<Api extends ClientApi, Client>(
  Client: ClientClass<Api, Client>,
  openApi: (url: string, options: ConnectOptions) => Api,
) {
  return (url: string, options: ConnectOptions = {}): Client => {
    checkOptions<ConnectOptions>({ apiKey: 'string' }, options);
    return new Client(openApi(url, options), async () => undefined);
  };
}
