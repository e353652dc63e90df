import { describe, expect, it } from 'vitest';
import { alertNames, alertRules } from '../../src/domain/alerts/rules.js';
import type { AlertListWire, AlertWire } from '../../src/protocol/alerts-schema.js';
import { withAlertMetrics } from '../../src/server/alert-metrics.js';
import { createMetrics } from '../../src/server/metrics.js';
import { InProcessApi } from '../../src/client/in-process-api.js';
import { emptySnapshot } from '../../src/domain/alerts/snapshot.js';
import { lintMetrics } from '../support/services/promtool.js';
import { listening, useKeyedHttp } from './keyed.js';
import { post, useHttp, type Problem } from './support.js';
import { NodeHttpApi } from '../../src/client/node-http-api.js';

const http = useHttp();

const put = (name: string, body: unknown) =>
  http().call({ method: 'PUT', url: `/api/v1/alerts/${name}`, body });
const silence = (name: string, body: unknown) =>
  http().call(post(`/api/v1/alerts/${name}/silence`, body));

describe('R-OB3: alerts over HTTP', () => {
  it('lists every rule, or those in a state', async () => {
    const list = (await http().call({ url: '/api/v1/alerts' })).json<AlertListWire>();
    expect(list.items.map(({ name }) => name)).toEqual(alertNames);
    expect(list).toMatchObject({ next_cursor: null, evaluated_at: null });
    expect(list.items[0]).toEqual({
      name: 'high_priority_depth',
      severity: 'warning',
      state: 'ok',
      since: null,
      value: null,
      threshold: 1_000,
      for_seconds: 60,
      off: false,
      silenced_until: null,
      silence_note: null,
      summary: alertRules.high_priority_depth.meaning,
      runbook: 'docs/alerts.md#high_priority_depth',
      labels: {},
    });
    const firing = await http().call({ url: '/api/v1/alerts?state=firing' });
    expect(firing.json<AlertListWire>().items).toEqual([]);
  });

  it('changes, resets and silences a rule', async () => {
    const set = await put('age_p95', { threshold: 30.5, for_seconds: 120 });
    expect(set.json<AlertWire>()).toMatchObject({ threshold: 30.5, for_seconds: 120, off: false });
    expect((await put('age_p95', { off: true })).json()).toMatchObject({
      threshold: 600,
      for_seconds: 0,
      off: true,
    });
    expect((await put('age_p95', {})).json()).toMatchObject({ threshold: 600, off: false });

    const silenced = (await silence('age_p95', { seconds: 60, note: 'a test' })).json<AlertWire>();
    expect(silenced).toMatchObject({ state: 'silenced', silence_note: 'a test' });
    const list = await http().call({ url: '/api/v1/alerts?state=silenced' });
    expect(list.json<AlertListWire>().items.map(({ name }) => name)).toEqual(['age_p95']);
    expect((await silence('age_p95', { seconds: 0 })).json()).toMatchObject({
      state: 'ok',
      silenced_until: null,
      silence_note: null,
    });
  });

  it.each([
    ['a threshold that is no number', () => put('age_p95', { threshold: '5' }), '/threshold'],
    ['a share in percent', () => put('failure_rate', { threshold: 25 }), '/threshold'],
    ['a negative threshold', () => put('age_p95', { threshold: -1 }), '/threshold'],
    ['part of a second', () => put('age_p95', { for_seconds: 0.5 }), '/for_seconds'],
    ['more than a week', () => put('age_p95', { for_seconds: 604_801 }), '/for_seconds'],
    ['a field that there is not', () => put('age_p95', { treshold: 5 }), '/treshold'],
    ['off that is no boolean', () => put('age_p95', { off: 'yes' }), '/off'],
    ['a silence without an end', () => silence('age_p95', {}), '/seconds'],
    ['a silence of years', () => silence('age_p95', { seconds: 1e9 }), '/seconds'],
    ['an empty note', () => silence('age_p95', { seconds: 1, note: '' }), '/note'],
    ['a state that there is not', () => http().call({ url: '/api/v1/alerts?state=bad' }), '/state'],
  ])('R-AD7: %s is refused', async (_, call, path) => {
    const answer = await call();
    expect(answer.status).toBe(400);
    expect(answer.json<Problem>().errors?.map((error) => error.path)).toEqual([path]);
  });

  it('R-AD7: a rule that there is not is refused, with the one that was meant', async () => {
    const answer = await put('agep95', {});
    expect(answer.status).toBe(404);
    expect(answer.json<Problem>()).toMatchObject({
      code: 'alert_not_found',
      detail: 'There is no alert rule agep95. Did you mean age_p95?',
    });
    expect((await silence('toString', { seconds: 1 })).status).toBe(404);
  });

  it('in-process is as strict, in the names of TypeScript', async () => {
    const api = new InProcessApi(http().engine);
    const bad = { forSeconds: -1 };
    await expect(api.putAlert('age_p95', bad)).rejects.toMatchObject({
      code: 'invalid_request',
      errors: [{ path: '/forSeconds' }],
    });
    expect((await api.listAlerts({ state: 'ok' })).items).toHaveLength(alertNames.length);
  });

  it('the client calls the same over HTTP', async () => {
    const api = new NodeHttpApi(await listening(http().app));
    await expect(api.putAlert('age_p95', { forSeconds: -1 })).rejects.toMatchObject({
      code: 'invalid_request',
      errors: [{ path: '/forSeconds' }],
    });
    const until = (await api.silenceAlert('age_p95', { seconds: 60 })).silencedUntil;
    expect(until).toBeInstanceOf(Date);
    const { items, evaluatedAt } = await api.listAlerts({ state: 'silenced' });
    expect(items).toMatchObject([{ name: 'age_p95', state: 'silenced', silencedUntil: until }]);
    expect(evaluatedAt).toBeNull();
  });
});

describe('R-OB3: what the rules of Prometheus read', () => {
  it('is exported, and passes the rules of promtool', async () => {
    const { engine } = http();
    const snapshot = { ...emptySnapshot, deadLetterReasons: [{ label: 'X', value: 3 }] };
    const metrics = withAlertMetrics(createMetrics(engine, engine), {
      findAlertSnapshot: async () => snapshot,
    });
    const text = await metrics.text();
    expect(lintMetrics(text)).toBe('');
    expect(text).toContain('sluice_dead_letters{reason="X"} 3');
    const exported = new Set(text.match(/^# TYPE \w+/gm)?.map((line) => line.slice(7)));
    const read = Object.values(alertRules).flatMap(
      ({ twin, threshold }) => twin(threshold).match(/sluice_\w+/g) ?? [],
    );
    expect(read.filter((name) => !exported.has(name))).toEqual([]);
  });
});

describe('R-AD6: who may see and change alerts', () => {
  const keyed = useKeyedHttp();

  it('those who may read see them, those who may administer change them, confined keys neither', async () => {
    const [reader, admin] = await Promise.all([
      keyed().make({ scopes: ['read'] }),
      keyed().make({ scopes: ['admin'] }),
    ]);
    const confined = await keyed().make({ scopes: ['admin', 'read'], queues: ['a'] });
    const list = { url: '/api/v1/alerts' };
    const change = { method: 'PUT', url: '/api/v1/alerts/age_p95', body: {} };
    const statuses = async (key: string) =>
      Promise.all([list, change].map(async (call) => (await keyed().call(call, key)).status));
    expect(await statuses(reader.key)).toEqual([200, 403]);
    expect(await statuses(admin.key)).toEqual([200, 200]);
    expect(await statuses(confined.key)).toEqual([403, 403]);
  });
});
