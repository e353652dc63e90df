import { SluiceError } from '../domain/errors.js';

const examples = 'like http://127.0.0.1:7700';

/** Throws a sentence that says what to type instead. Without a scheme, `localhost:7700` is read as one. */
export function checkServerUrl(url: unknown): void {
  const fault = findFault(url);
  if (fault !== null) throw new SluiceError('invalid_request', fault);
}

function findFault(url: unknown): string | null {
  if (typeof url !== 'string' || url === '') {
    return `The address of the server must be a URL ${examples}, not ${JSON.stringify(url)}.`;
  }
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase();
  if (scheme === undefined) {
    return canParse(`http://${url}`)
      ? `The address "${url}" has no scheme. Type "http://${url}", or "https://${url}".`
      : `The address of the server must be a URL ${examples}, not "${url}".`;
  }
  if (scheme.startsWith('postgres')) {
    return `The address "${hidden(url)}" is that of a database. Type Sluice.open({ databaseUrl: … }), or the URL of a Sluice server ${examples}.`;
  }
  if (scheme !== 'http' && scheme !== 'https') {
    return `The address "${hidden(url)}" begins with ${scheme}://. Type http:// or https:// instead.`;
  }
  return canParse(url) ? null : `The address "${hidden(url)}" is not a URL. Type one ${examples}.`;
}

function canParse(url: string): boolean {
  return URL.canParse(url);
}

/** Without user and password. */
function hidden(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//');
}
