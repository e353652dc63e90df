import { describe, expect, it } from 'vitest';
import { checkServeConfig, describeServeConfig } from './config.js';

const secret = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
const hook = 'https://hooks.example.com/services/T0/hidden';
const check = (env: Record<string, string>) => checkServeConfig({ flags: {}, env, file: null });

function problems(env: Record<string, string>): readonly string[] {
  const checked = check(env);
  return checked.kind === 'invalid' ? checked.problems : [];
}

describe('R-OB3: settings of alerts', () => {
  it('are evaluated every ten seconds and told to nobody by default', () => {
    expect(check({})).toMatchObject({
      config: { alerts: { intervalMs: 10_000, webhook: null } },
    });
  });

  it('name a webhook with a secret, and for Slack without', () => {
    const env = { SLUICE_ALERT_WEBHOOK: hook, SLUICE_ALERT_WEBHOOK_SECRET: secret };
    expect(check(env)).toMatchObject({
      config: { alerts: { webhook: { url: hook, secret, format: 'standard' } } },
    });
    const slack = { SLUICE_ALERT_WEBHOOK: hook, SLUICE_ALERT_WEBHOOK_FORMAT: 'slack' };
    expect(check(slack)).toMatchObject({
      config: { alerts: { webhook: { url: hook, secret: null, format: 'slack' } } },
    });
  });

  it.each([
    [{ SLUICE_ALERT_WEBHOOK: 'ftp://example.com' }, /^SLUICE_ALERT_WEBHOOK must be like https:/],
    [{ SLUICE_ALERT_WEBHOOK: hook }, /needs SLUICE_ALERT_WEBHOOK_SECRET: whsec_/],
    [{ SLUICE_ALERT_WEBHOOK: hook, SLUICE_ALERT_WEBHOOK_SECRET: 'abc' }, /must be whsec_/],
    [{ SLUICE_ALERT_WEBHOOK: hook, SLUICE_ALERT_WEBHOOK_SECRET: 'whsec_QUJD' }, /24 to 64 bytes/],
    [{ SLUICE_ALERT_WEBHOOK_SECRET: secret }, /needs alertWebhook/],
    [
      { SLUICE_ALERT_WEBHOOK: 'https://a:b@example.com', SLUICE_ALERT_WEBHOOK_SECRET: secret },
      /password/,
    ],
    [
      {
        SLUICE_ALERT_WEBHOOK: hook,
        SLUICE_ALERT_WEBHOOK_SECRET: secret,
        SLUICE_ALERT_INTERVAL_MS: '0',
      },
      /is 0/,
    ],
    [{ SLUICE_ALERT_WEBHOOK_FORMAT: 'teams' }, /one of standard, slack/],
    [{ SLUICE_ALERT_INTERVAL_MS: '-1' }, /whole number from 0/],
  ])('R-AD7: %j is refused with a sentence', (env, sentence) => {
    const found = problems(env);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(sentence);
  });

  it('R-AD6: neither the secret nor the path of the address is shown', () => {
    const checked = check({ SLUICE_ALERT_WEBHOOK: hook, SLUICE_ALERT_WEBHOOK_SECRET: secret });
    if (checked.kind === 'invalid') throw new Error(checked.problems.join());
    const shown = JSON.stringify(describeServeConfig(checked.config));
    expect(shown).toContain('hooks.example.com (standard)');
    expect(shown).not.toContain('hidden');
    expect(shown).not.toContain('whsec_');
    const wrong = problems({ SLUICE_ALERT_WEBHOOK: hook, SLUICE_ALERT_WEBHOOK_SECRET: 'hush' });
    expect(wrong.join()).not.toContain('hush');
  });
});
