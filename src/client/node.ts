// `sluice/client` in Node: the same, over `node:http`.
import type { ClientApi } from '../protocol/api.js';
import { connecting } from './connecting.js';
import { HttpApi } from './http-api.js';
import { openNodeSender } from './node-sender.js';
import { SluiceClient } from './sluice-client.js';

export * from './index.js';
export const connect = connecting(
  SluiceClient<ClientApi>,
  (url, options) => new HttpApi(url, options, openNodeSender),
);
