import { HttpApi, type HttpApiOptions } from './http-api.js';
import { openNodeSender } from './node-sender.js';

/** Sluice over HTTP, for programs that run in Node. */
export class NodeHttpApi extends HttpApi {
  constructor(url: string, options: HttpApiOptions = {}) {
    super(url, options, openNodeSender);
  }
}
