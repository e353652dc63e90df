import { connecting } from './connecting.js';
import { openNodeSender } from './node-sender.js';
import { Sluice } from './sluice.js';

/** A server that runs elsewhere: the same calls as embedded, over HTTP. */
export const connect = connecting(Sluice, openNodeSender);
