import type { SluiceApi } from '../protocol/api.js';
import { checkOptions } from '../protocol/options.js';
import { HttpApi } from './http-api.js';
import type { OpenSender } from './send.js';
import { checkServerUrl } from './server-url.js';

export interface ConnectOptions {
  readonly apiKey?: string;
}

type ClientClass<Client> = new (api: SluiceApi, close: () => Promise<void>) => Client;

/** The `connect` of one entry point of the package: how it sends requests, and which client it answers with. */
export function connecting<Client>(Client: ClientClass<Client>, openSender: OpenSender) {
  return (url: string, options: ConnectOptions = {}): Client => {
    checkServerUrl(url);
    checkOptions<ConnectOptions>({ apiKey: 'string' }, options);
    return new Client(new HttpApi(url, options, openSender), async () => undefined);
  };
}
