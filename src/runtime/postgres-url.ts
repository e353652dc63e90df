/** Where Postgres is. Several hosts: a primary and the standbys that may take its place. */
export interface PostgresAddress {
  /** One URL for each host, in the order in which they are tried. */
  readonly urls: readonly string[];
  /** Use only a host that accepts writes. */
  readonly mustWrite: boolean;
  /** How long a host may take to answer; null: the URL does not say. */
  readonly connectTimeoutMs: number | null;
}

export const postgresUrlForm =
  'like postgres://user:password@host:5432/database, or with several hosts ' +
  'postgres://user:password@host1:5432,host2:5432/database?target_session_attrs=read-write';

/** Sluice writes, so `read-only`, `standby` and `prefer-standby` are no choice. */
const writingAttributes: readonly string[] = ['read-write', 'primary'];

const shape =
  /^(?<scheme>postgres(?:ql)?:\/\/)(?<user>[^/?#]*@)?(?<hosts>[^@/?#]*)(?<rest>[/?#].*)?$/;

/** Null when it is not one. By hand: no URL parser accepts more than one host. */
export function parsePostgresUrl(url: string): PostgresAddress | null {
  const parts = shape.exec(url)?.groups;
  if (parts === undefined) return null;
  const { scheme = '', user = '', hosts = '', rest = '' } = parts;
  const names = hosts.split(',');
  if (names.length > 1 && names.includes('')) return null;
  const urls = names.map((name) => `${scheme}${user}${name}${rest}`);
  if (!urls.every((one) => URL.canParse(one))) return null;
  const query = new URL(urls[0] ?? '').searchParams;
  const attribute = query.get('target_session_attrs') ?? 'any';
  const timeout = query.get('connect_timeout');
  if (attribute !== 'any' && !writingAttributes.includes(attribute)) return null;
  if (timeout !== null && !/^\d{1,6}$/.test(timeout)) return null;
  return {
    urls,
    mustWrite: names.length > 1 || attribute !== 'any',
    connectTimeoutMs: Number(timeout) > 0 ? Number(timeout) * 1000 : null,
  };
}
