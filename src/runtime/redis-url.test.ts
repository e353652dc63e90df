import { describe, expect, it } from 'vitest';
import { parseRedisUrl } from './redis-url.js';

const plain = {
  kind: 'standalone',
  tls: false,
  hosts: [{ host: 'host', port: 6379 }],
  username: null,
  password: null,
  masterName: '',
  sentinelPassword: null,
  db: 0,
};

describe('R-CH14: parseRedisUrl', () => {
  it.each([
    ['redis://host', plain],
    ['redis://host/', plain],
    ['rediss://host:7000/3', { ...plain, tls: true, hosts: [{ host: 'host', port: 7000 }], db: 3 }],
    ['redis://:p%40ss@host', { ...plain, password: 'p@ss' }],
    ['redis://me:a:b@c@host', { ...plain, username: 'me', password: 'a:b@c' }],
    ['redis://[::1]:7000', { ...plain, hosts: [{ host: '::1', port: 7000 }] }],
    [
      'redis+sentinel://:secret@a:1,b/main/2?sentinelPassword=s2',
      {
        ...plain,
        kind: 'sentinel',
        hosts: [
          { host: 'a', port: 1 },
          { host: 'b', port: 26_379 },
        ],
        password: 'secret',
        masterName: 'main',
        sentinelPassword: 's2',
        db: 2,
      },
    ],
    [
      'rediss+cluster://a:1,b:2',
      {
        ...plain,
        kind: 'cluster',
        tls: true,
        hosts: [
          { host: 'a', port: 1 },
          { host: 'b', port: 2 },
        ],
      },
    ],
  ])('takes %s', (url, address) => {
    expect(parseRedisUrl(url)).toEqual(address);
  });

  it.each([
    ['another scheme', 'http://host'],
    ['no scheme', 'host:6379'],
    ['no host', 'redis://'],
    ['an empty host', 'redis+cluster://a,'],
    ['a port that is none', 'redis://host:99999'],
    ['two hosts of one server', 'redis://a,b'],
    ['a database that is none', 'redis://host/main'],
    ['a database of a cluster', 'redis+cluster://host/1'],
    ['sentinels without the name of a master', 'redis+sentinel://host'],
    ['an option that is not there', 'redis://host?retries=3'],
    ["a sentinel's password without one", 'redis://host?sentinelPassword=a'],
    ['a broken escape', 'redis://:%zz@host'],
  ])('refuses %s', (_, url) => {
    expect(parseRedisUrl(url)).toBeNull();
  });
});
