import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultTaskPolicy } from '../domain/task-policy.js';
import { defaultScalingSettings } from '../domain/scaling.js';
import {
  checkServeConfig,
  describeServeConfig,
  serveSettings,
  type ConfigSources,
} from './config.js';
import { hidePassword } from './hide-password.js';

function check(sources: Partial<ConfigSources>) {
  return checkServeConfig({ flags: {}, env: {}, file: null, ...sources });
}

function problemsOf(sources: Partial<ConfigSources>): readonly string[] {
  const checked = check(sources);
  return checked.kind === 'invalid' ? checked.problems : [];
}

describe('checkServeConfig', () => {
  it('works with nothing said', () => {
    expect(check({})).toEqual({
      kind: 'valid',
      config: {
        alerts: { intervalMs: 10_000, webhook: null },
        host: '127.0.0.1',
        port: 7700,
        database: { kind: 'pglite', dataDir: '.sluice' },
        redisUrl: null,
        heartbeatIntervalMs: 10_000,
        leaseMs: 30_000,
        wakeOrder: 'spread',
        retainEndedDays: 7,
        retainDeadLettersDays: 30,
        auditDays: 365,
        maxScheduleDays: 366,
        maxActive: 10_000_000,
        maxActiveMedium: '90%',
        maxActiveLow: '80%',
        submitLimitPerKey: [],
        submitLimitPerUser: [],
        tasks: defaultTaskPolicy,
        assignmentTimeoutMs: null,
        scaling: { settings: defaultScalingSettings, provisioner: { kind: 'none' } },
        corsOrigins: [],
        openMetrics: false,
        trustProxy: [],
        maxConnections: 10_000,
        drainMs: 5_000,
        environment: null,
        logLevel: 'info',
        logFormat: null,
        logTransitions: 'problems',
        logPayloads: false,
      },
    });
  });

  it('one connection to Postgres is not enough with Redis', () => {
    const env = {
      DATABASE_URL: 'postgres://h/d',
      REDIS_URL: 'redis://h',
      SLUICE_POOL_SIZE: '1',
    };
    expect(problemsOf({ env })).toEqual([expect.stringMatching(/poolSize must be at least 2/)]);
  });

  it('a flag beats a variable, a variable beats the file', () => {
    const file = { path: 'sluice.config.json', values: { port: 1, logLevel: 'warn', host: '::1' } };
    const env = { SLUICE_PORT: '2', SLUICE_LOG_LEVEL: 'error' };
    expect(check({ flags: { port: '3' }, env, file })).toMatchObject({
      config: { port: 3, logLevel: 'error', host: '::1' },
    });
  });

  it('the kind of database follows whoever speaks loudest', () => {
    const env = { DATABASE_URL: 'postgres://localhost/app' };
    expect(check({ env })).toMatchObject({
      config: { database: { kind: 'postgres', url: 'postgres://localhost/app' } },
    });
    expect(check({ env, flags: { data: 'here' } })).toMatchObject({
      config: { database: { kind: 'pglite', dataDir: 'here' } },
    });
    expect(check({ flags: { data: ':memory:' } })).toMatchObject({
      config: { database: { kind: 'pglite' } },
    });
    expect(problemsOf({ flags: { data: 'here', databaseUrl: 'postgres://localhost/a' } })).toEqual([
      expect.stringContaining('exclude each other'),
    ]);
  });

  it('R-CH12: Redis comes with a Postgres server', () => {
    const database = { DATABASE_URL: 'postgres://localhost/app' };
    const env = { ...database, REDIS_URL: 'redis://general:6379' };
    expect(check({ env })).toMatchObject({ config: { redisUrl: 'redis://general:6379' } });
    expect(check({ env: { ...env, SLUICE_REDIS_URL: 'redis://ours:6379' } })).toMatchObject({
      config: { redisUrl: 'redis://ours:6379' },
    });
    expect(check({ env, flags: { redisUrl: 'redis://here' } })).toMatchObject({
      config: { redisUrl: 'redis://here' },
    });
    expect(problemsOf({ env: { REDIS_URL: 'redis://general:6379' } })).toEqual([
      expect.stringMatching(/^REDIS_URL needs a Postgres server.*embedded database is for one/),
    ]);
    expect(problemsOf({ flags: { data: 'here', redisUrl: 'redis://here' } })).toEqual([
      expect.stringMatching(/^--redis-url needs a Postgres server/),
    ]);
  });

  it('whoever asks for the embedded database louder than for Redis gets it alone', () => {
    const env = { DATABASE_URL: 'postgres://localhost/app', REDIS_URL: 'redis://general:6379' };
    expect(check({ env, flags: { data: 'here' } })).toMatchObject({
      config: { database: { kind: 'pglite', dataDir: 'here' }, redisUrl: null },
    });
  });

  it('an empty variable says nothing', () => {
    expect(check({ env: { SLUICE_PORT: '', DATABASE_URL: '' } })).toEqual(check({}));
  });

  it('R-RE10: a lease of at most two heartbeats is refused, naming both', () => {
    const [problem, ...others] = problemsOf({
      env: { SLUICE_LEASE_MS: '20000', SLUICE_HEARTBEAT_INTERVAL_MS: '10000' },
    });
    expect(problem).toMatch(/leaseMs \(20000\).*heartbeatIntervalMs \(10000\)/);
    expect(others).toEqual([]);
    fc.assert(
      fc.property(
        fc.integer({ min: 100, max: 10_000 }),
        fc.integer({ min: 1_000, max: 40_000 }),
        (heartbeatIntervalMs, leaseMs) => {
          const file = { path: 'f', values: { heartbeatIntervalMs, leaseMs } };
          expect(check({ file }).kind === 'valid').toBe(leaseMs > 2 * heartbeatIntervalMs);
        },
      ),
    );
  });

  it('R-RE10: lease and heartbeat are told in seconds on the command line', () => {
    expect(check({ flags: { leaseMs: '1.5', heartbeatIntervalMs: '0.5' } })).toMatchObject({
      config: { leaseMs: 1_500, heartbeatIntervalMs: 500 },
    });
    expect(problemsOf({ flags: { leaseMs: '30s', heartbeatIntervalMs: '0' } })).toEqual([
      '--heartbeat-seconds must be a number of seconds from 0.1 to 3600, not "0".',
      '--lease-seconds must be a number of seconds from 1 to 86400, not "30s".',
    ]);
  });

  it('R-AD2: ceilings are told as tasks, or as shares of the ceiling for all', () => {
    const flags = { maxActive: '100', maxActiveLow: '50%', maxActiveMedium: '90' };
    const checked = check({ flags });
    expect(checked).toMatchObject({
      config: { maxActive: 100, maxActiveLow: '50%', maxActiveMedium: 90 },
    });
    expect(problemsOf({ flags: { ...flags, maxActiveLow: 'half' } })).toEqual([
      '--max-active-low must be a share such as 80%, or a whole number from 1 to 1000000000, not "half".',
    ]);
    expect(problemsOf({ flags: { maxActive: '100', maxActiveMedium: '70' } })).toEqual([
      'maxActiveLow (80%) must be at most maxActiveMedium (70): less urgent tasks are refused first.',
    ]);
    expect(problemsOf({ flags: { maxActive: '100', maxActiveMedium: '101' } })).toEqual([
      'maxActiveMedium (101) must be a share such as 80%, or a whole number of tasks from 1 to maxActive (100).',
    ]);
  });

  it('R-AD4: limits on submissions are off, or told as tasks and windows', () => {
    expect(check({})).toMatchObject({ config: { submitLimitPerKey: [], submitLimitPerUser: [] } });
    const env = { SLUICE_SUBMIT_LIMIT_PER_USER: '5/m' };
    const checked = check({ env, flags: { submitLimitPerKey: '100/60s,1000/3600s' } });
    if (checked.kind === 'invalid') throw new Error(checked.problems.join());
    expect(checked.config).toMatchObject({
      submitLimitPerKey: [
        { rate: 100, perSeconds: 60 },
        { rate: 1_000, perSeconds: 3_600 },
      ],
      submitLimitPerUser: [{ rate: 5, perSeconds: 60 }],
    });
    expect(describeServeConfig(checked.config)).toMatchObject({
      'submits per key': '100 tasks a minute, 1,000 tasks an hour',
    });
    expect(problemsOf({ flags: { submitLimitPerKey: '100' } })).toEqual([
      expect.stringMatching(/^--submit-limit-per-key must be .*100\/60s.*, not "100"\.$/),
    ]);
  });

  it('says everything that is wrong at once, and who said it', () => {
    const problems = problemsOf({
      flags: { port: '99999' },
      env: { SLUICE_LOG_LEVEL: 'loud' },
      file: { path: 'sluice.config.json', values: { leaseMs: '30s', prot: 1 } },
    });
    expect(problems).toEqual([
      expect.stringMatching(/^prot in sluice\.config\.json is not a setting; there are host, /),
      '--port must be a whole number from 0 to 65535, not "99999".',
      'leaseMs in sluice.config.json must be a whole number from 1000 to 86400000, not "30s".',
      expect.stringMatching(/^SLUICE_LOG_LEVEL must be one of trace, .*, not "loud"\.$/),
    ]);
  });

  it('R-AD6: origins and proxies are told in a list, and only what can be one is taken', () => {
    const flags = { corsOrigins: 'https://a.example, http://b:8080', trustProxy: '10.0.0.0/8,::1' };
    expect(check({ flags })).toMatchObject({
      config: {
        corsOrigins: ['https://a.example', 'http://b:8080'],
        trustProxy: ['10.0.0.0/8', '::1'],
      },
    });
    const env = {
      SLUICE_CORS_ORIGINS: 'https://a.example/path',
      SLUICE_TRUST_PROXY: '10.0.0.0/33',
    };
    expect(problemsOf({ env })).toEqual([
      expect.stringMatching(/^SLUICE_CORS_ORIGINS must be origins like https:/),
      expect.stringMatching(/^SLUICE_TRUST_PROXY must be addresses or networks like/),
    ]);
  });

  it('R-AD6: a password is neither shown nor quoted', () => {
    expect(problemsOf({ env: { DATABASE_URL: 'mysql://me:secret@host/db' } }).join()).not.toContain(
      'secret',
    );
    const checked = check({ flags: { databaseUrl: 'postgres://me:secret@host/db?x=1' } });
    if (checked.kind === 'invalid') throw new Error(checked.problems.join());
    expect(JSON.stringify(describeServeConfig(checked.config))).not.toContain('secret');
    expect(hidePassword('postgres://me:secret@host/db')).toBe('postgres://me:***@host/db');
    expect(hidePassword('postgres://host/db?password=secret&a=1')).toBe(
      'postgres://host/db?password=***&a=1',
    );
  });

  it('R-AD6: nor is that of Redis', () => {
    expect(problemsOf({ env: { REDIS_URL: 'http://:secret@host' } }).join()).not.toContain(
      'secret',
    );
    for (const url of [
      'redis://:secret@host:6379/1',
      'rediss://me:se:cr@secret@host',
      'redis+sentinel://:secret@a:1,b:2/main?sentinelPassword=secret',
      'redis+cluster://me:secret@a,b',
    ]) {
      const checked = check({ flags: { databaseUrl: 'postgres://host/db', redisUrl: url } });
      if (checked.kind === 'invalid') throw new Error(checked.problems.join());
      const { redis = '' } = describeServeConfig(checked.config);
      expect(redis).toContain(':***@');
      expect(redis).not.toContain('secret');
    }
  });

  it('every setting can be set without a file', () => {
    for (const { flag, variables } of Object.values(serveSettings)) {
      expect(variables.length + (flag === null ? 0 : 1)).toBeGreaterThan(0);
    }
  });
});
