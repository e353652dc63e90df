import type { HttpApiOptions } from './http-api.js';
import { HttpWorkerApi } from './http-worker-api.js';
import { openNodeSender } from './node-sender.js';

/** Sluice over HTTP, for programs that run in Node. */
export class NodeHttpApi extends HttpWorkerApi {
  constructor(url: string, options: HttpApiOptions = {}) {
    super(url, options, openNodeSender);
  }
}
