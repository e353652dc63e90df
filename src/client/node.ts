// `sluice/client` in Node: the same, over `node:http`.
import { connecting } from './connecting.js';
import { openNodeSender } from './node-sender.js';
import { SluiceClient } from './sluice-client.js';

export * from './index.js';
export const connect = connecting(SluiceClient, openNodeSender);
