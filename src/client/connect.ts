import { checkOptions } from '../protocol/options.js';
import { HttpApi } from './http-api.js';
import { SluiceClient } from './sluice-client.js';

export interface ConnectOptions {
  readonly apiKey?: string;
}

/** A server that runs elsewhere: the same calls as embedded, over HTTP. */
export function connect(url: string, options: ConnectOptions = {}): SluiceClient {
  checkOptions<ConnectOptions>({ apiKey: 'string' }, options);
  return new SluiceClient(new HttpApi(url, options), async () => undefined);
}
