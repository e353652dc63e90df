import { describe, expect, it } from 'vitest';
import { checkServeConfig, describeServeConfig } from './config.js';

const check = (env: Record<string, string>) => checkServeConfig({ flags: {}, env, file: null });
const webhook = 'https://user:hidden@scaler.internal/sluice';
const secret = 'sixteen or more characters';

describe('R-AD5: settings for workers on demand', () => {
  it('ask nobody by default, processes for a module, or a webhook', () => {
    const scaling = (env: Record<string, string>) => {
      const checked = check(env);
      return checked.kind === 'valid' ? checked.config.scaling : checked.problems;
    };
    expect(scaling({})).toMatchObject({ provisioner: { kind: 'none' } });
    expect(
      scaling({ SLUICE_SCALE_MODULE: 'tasks.mjs', SLUICE_SCALE_QUEUES: 'a, b' }),
    ).toMatchObject({
      provisioner: { kind: 'process', module: 'tasks.mjs' },
      settings: { offer: { queues: ['a', 'b'], taskTypes: null, capabilities: [] } },
    });
    expect(
      scaling({ SLUICE_SCALE_WEBHOOK: webhook, SLUICE_SCALE_WEBHOOK_SECRET: secret }),
    ).toMatchObject({
      provisioner: { kind: 'webhook', url: webhook, secret },
      settings: { offer: { capabilities: null } },
    });
  });

  it('contradictions are told, all at once', () => {
    const env = {
      SLUICE_SCALE_MIN: '3',
      SLUICE_SCALE_MAX: '2',
      SLUICE_SCALE_MODULE: 'tasks.mjs',
      SLUICE_SCALE_WEBHOOK: webhook,
    };
    expect(check(env)).toEqual({
      kind: 'invalid',
      problems: [
        "scaleMin (3) must be at most scaleMax (2): there can't be more than the most.",
        'scaleModule and scaleWebhook exclude each other: one of them starts workers.',
        expect.stringMatching(/^scaleWebhook needs SLUICE_SCALE_WEBHOOK_SECRET, 16 characters/),
      ],
    });
    expect(check({ SLUICE_SCALE_QUEUES: 'a,,b' })).toMatchObject({ kind: 'invalid' });
  });

  it('R-AD6: no secret is shown', () => {
    const shown = check({ SLUICE_SCALE_WEBHOOK: webhook, SLUICE_SCALE_WEBHOOK_SECRET: secret });
    if (shown.kind === 'invalid') throw new Error(shown.problems.join());
    const described = JSON.stringify(describeServeConfig(shown.config));
    expect(described).toContain('scaler.internal');
    expect(described).not.toMatch(/hidden|sixteen/);
    expect(JSON.stringify(check({ SLUICE_SCALE_WEBHOOK: 'ftp://u:hidden@h' }))).not.toContain(
      'hidden',
    );
  });
});
