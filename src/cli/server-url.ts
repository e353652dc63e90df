export const defaultUrl = 'http://127.0.0.1:7700';

/** The address at which this machine reaches a server that listens there. */
export function urlOf(host: string, port: number): string {
  // Any free port: which one it took nobody knows.
  if (port === 0) return defaultUrl;
  return fromHere(`http://${host.includes(':') ? `[${host}]` : host}:${port}`);
}

/** A server that listens on every address is reached on its own. */
export function fromHere(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
