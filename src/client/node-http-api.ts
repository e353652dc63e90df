import type { Person, ProgramsApi } from '../protocol/api.js';
import { onBehalfOfHeader } from '../protocol/caller.js';
import { checkPerson } from '../protocol/values.js';
import type { HttpApiOptions } from './http-api.js';
import { HttpWorkerApi } from './http-worker-api.js';
import { openNodeSender } from './node-sender.js';

/** Sluice over HTTP, for programs that run in Node. */
export class NodeHttpApi extends HttpWorkerApi implements ProgramsApi {
  readonly #url: string;
  readonly #options: HttpApiOptions;

  constructor(url: string, options: HttpApiOptions = {}) {
    super(url, options, openNodeSender);
    this.#url = url;
    this.#options = options;
  }

  /** Connections are shared by all of this process: another one of these costs nothing. */
  onBehalfOf({ name }: Person): NodeHttpApi {
    const headers = { [onBehalfOfHeader]: encodeURIComponent(checkPerson('/name', name)) };
    return new NodeHttpApi(this.#url, { ...this.#options, headers });
  }
}
