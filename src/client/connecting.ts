import type { SluiceApi } from '../protocol/api.js';
import { HttpApi } from './http-api.js';
import type { OpenSender } from './send.js';

export interface ConnectOptions {
  readonly apiKey?: string;
}

type ClientClass<Client> = new (api: SluiceApi, close: () => Promise<void>) => Client;

/** The `connect` of one entry point of the package: how it sends requests, and which client it answers with. */
export function connecting<Client>(Client: ClientClass<Client>, openSender: OpenSender) {
  return (url: string, options: ConnectOptions = {}): Client =>
    new Client(new HttpApi(url, options, openSender), async () => undefined);
}
