import { connecting } from './connecting.js';
import { NodeHttpApi } from './node-http-api.js';
import { Sluice } from './sluice.js';

/** A server that runs elsewhere: the same calls as embedded, over HTTP. */
export const connect = connecting(Sluice, (url, options) => new NodeHttpApi(url, options));
