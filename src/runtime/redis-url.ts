/** Where Redis is, and how to get in. */
export interface RedisAddress {
  readonly kind: 'standalone' | 'sentinel' | 'cluster';
  readonly tls: boolean;
  /** Of the sentinels, or of some nodes of the cluster; a standalone server has one. */
  readonly hosts: readonly RedisHost[];
  readonly username: string | null;
  readonly password: string | null;
  /** The name under which the sentinels know the master; empty for the other kinds. */
  readonly masterName: string;
  readonly sentinelPassword: string | null;
  readonly db: number;
}

export interface RedisHost {
  readonly host: string;
  readonly port: number;
}

export const redisUrlExamples =
  'redis://:password@host:6379/0, ' +
  'redis+sentinel://:password@host:26379,host:26379/master-name or ' +
  'redis+cluster://:password@host:6379,host:6379 (rediss… for TLS)';

const shape =
  /^(?<tls>rediss|redis)(?:\+(?<kind>sentinel|cluster))?:\/\/(?:(?<user>[^:/?#]*)(?::(?<password>[^/?#]*))?@)?(?<hosts>[^@/?#]+)(?<path>\/[^?#]*)?(?:\?(?<query>[^#]*))?$/;

/** Null when it is not one. By hand: no URL parser takes more than one host. */
export function parseRedisUrl(url: string): RedisAddress | null {
  const parts = shape.exec(url)?.groups;
  if (parts === undefined) return null;
  const kind = (parts.kind ?? 'standalone') as RedisAddress['kind'];
  const hosts = parseHosts(parts.hosts ?? '', kind === 'sentinel' ? 26_379 : 6_379);
  const place = parsePath(parts.path ?? '', kind);
  const username = decoded(parts.user);
  const password = decoded(parts.password);
  const query = parseQuery(parts.query ?? '', kind);
  if (hosts === null || place === null || query === null) return null;
  if (username === undefined || password === undefined) return null;
  if (kind === 'standalone' && hosts.length > 1) return null;
  return { kind, tls: parts.tls === 'rediss', hosts, username, password, ...place, ...query };
}

function parseHosts(list: string, defaultPort: number): RedisHost[] | null {
  const hosts = list.split(',').map((one) => parseHost(one, defaultPort));
  return hosts.includes(null) ? null : hosts.filter((host) => host !== null);
}

function parseHost(text: string, defaultPort: number): RedisHost | null {
  const parts = /^(?:\[(?<six>[0-9a-fA-F:.]+)\]|(?<name>[^:[\]\s]+))(?::(?<port>\d{1,5}))?$/.exec(
    text,
  )?.groups;
  const host = parts?.six ?? parts?.name;
  const port = Number(parts?.port ?? defaultPort);
  return host === undefined || port < 1 || port > 65_535 ? null : { host, port };
}

function parsePath(
  path: string,
  kind: RedisAddress['kind'],
): Pick<RedisAddress, 'masterName' | 'db'> | null {
  const steps = path.split('/').slice(1);
  const masterName = kind === 'sentinel' ? decoded(steps.shift()) : '';
  if (masterName === undefined || masterName === null) return null;
  if (kind === 'sentinel' && masterName === '') return null;
  const [db = '', ...others] = steps;
  if (others.length > 0 || !/^\d{0,9}$/.test(db)) return null;
  if (kind === 'cluster' && Number(db) !== 0) return null;
  return { masterName, db: Number(db) };
}

function parseQuery(
  query: string,
  kind: RedisAddress['kind'],
): Pick<RedisAddress, 'sentinelPassword'> | null {
  const values = new URLSearchParams(query);
  const sentinelPassword = values.get('sentinelPassword');
  values.delete('sentinelPassword');
  if (values.size > 0 || (sentinelPassword !== null && kind !== 'sentinel')) return null;
  return { sentinelPassword };
}

/** Null: nothing is there. Undefined: it is not what it should be. */
function decoded(part: string | undefined): string | null | undefined {
  if (part === undefined || part === '') return null;
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
