import { describe, expect, it } from 'vitest';
import { parsePostgresUrl } from './postgres-url.js';

describe('parsePostgresUrl', () => {
  it('one host is taken as it is', () => {
    const url = 'postgresql://me:p%40ss@db:6000/app?sslmode=verify-full';
    expect(parsePostgresUrl(url)).toEqual({
      urls: [url],
      mustWrite: false,
      connectTimeoutMs: null,
    });
  });

  it('several hosts become one URL each, and only one that accepts writes will do', () => {
    const url = 'postgres://me:a:b@c@h1:5432,[::1]:6000,h3/app?target_session_attrs=read-write';
    const rest = '/app?target_session_attrs=read-write';
    expect(parsePostgresUrl(url)).toEqual({
      urls: ['h1:5432', '[::1]:6000', 'h3'].map((host) => `postgres://me:a:b@c@${host}${rest}`),
      mustWrite: true,
      connectTimeoutMs: null,
    });
  });

  it.each([
    ['postgres://h1,h2/app', true],
    ['postgres://h1/app?target_session_attrs=primary', true],
    ['postgres://h1/app?target_session_attrs=any', false],
    ['postgres:///app?host=/var/run/postgresql', false],
  ])('%s must lead to a host that accepts writes: %s', (url, mustWrite) => {
    expect(parsePostgresUrl(url)).toMatchObject({ mustWrite });
  });

  it('connect_timeout is how long each host may take, in seconds; 0 is no limit of its own', () => {
    expect(parsePostgresUrl('postgres://h/a?connect_timeout=2')?.connectTimeoutMs).toBe(2_000);
    expect(parsePostgresUrl('postgres://h/a?connect_timeout=0')?.connectTimeoutMs).toBeNull();
  });

  it.each([
    ['another scheme', 'mysql://host/app'],
    ['an empty host in a list', 'postgres://h1,,h2/app'],
    ['a port that is none', 'postgres://h1:5432,h2:port/app'],
    ['a standby, which takes no writes', 'postgres://h1,h2/app?target_session_attrs=standby'],
    ['a time that is none', 'postgres://h1/app?connect_timeout=soon'],
  ])('refuses %s', (_, url) => {
    expect(parsePostgresUrl(url)).toBeNull();
  });
});
