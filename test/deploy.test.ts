import { validate as validateDockerfile } from 'dockerfile-utils';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Compile } from 'typebox/schema';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { newKeyText } from '../src/engine/key-text.js';
import { openEngine } from '../src/engine/open-engine.js';
import { withAlertMetrics } from '../src/server/alert-metrics.js';
import { createMetrics } from '../src/server/metrics.js';
import { renderChart, type Rendered } from './support/helm/render-chart.js';
import { freshPglite } from './support/pglite.js';
import { runPromtool } from './support/services/promtool.js';
import { runProgram } from './support/services/run-program.js';
import { createTemporaryFolder } from './support/services/temporary-folder.js';

const deploy = join(import.meta.dirname, '../deploy');
const read = (path: string) => readFile(join(deploy, path), 'utf8');

// What no package of npm or Debian checks: that the images can be pulled and built (there is no Docker engine), that
// Grafana draws the panels, and that a cluster admits what the chart renders.

describe('Grafana and Prometheus', () => {
  interface Dashboard {
    readonly panels: readonly {
      readonly id: number;
      readonly type: string;
      readonly title: string;
      readonly gridPos: {
        readonly x: number;
        readonly y: number;
        readonly w: number;
        readonly h: number;
      };
      readonly targets: readonly { readonly expr: string; readonly refId: string }[];
    }[];
  }

  it('R-OB2: Prometheus parses each query of the dashboard, and each names metrics that there are', async () => {
    const { panels } = JSON.parse(await read('grafana/sluice.json')) as Dashboard;
    const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    expect(queries.length).toBeGreaterThan(20);
    const rules = queries.map((expr, index) => ({
      record: `query_${index}`,
      expr: expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$\{?\w+\}?/g, 'any'),
    }));
    const folder = createTemporaryFolder('sluice-deploy-', undefined);
    const file = join(folder, 'rules.yml');
    await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    const { ok, output } = runPromtool(['check', 'rules', file]);
    await rm(folder, { recursive: true });
    expect([ok, output]).toEqual([true, expect.stringContaining(`${queries.length} rules`)]);
    const used = queries.flatMap((expr) => expr.match(/\bsluice_\w+/g) ?? []);
    expect(await metricsThatAreNot(used)).toEqual([]);
  });

  it('the panels of the dashboard have ids of their own, and none lies on another', async () => {
    const { panels } = JSON.parse(await read('grafana/sluice.json')) as Dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const overlapping = panels.flatMap((one, index) =>
      panels.slice(index + 1).filter(({ gridPos: other }) => {
        const { x, y, w, h } = one.gridPos;
        const isBeside = x + w <= other.x || other.x + other.w <= x;
        const isBelow = y + h <= other.y || other.y + other.h <= y;
        return !isBeside && !isBelow;
      }),
    );
    expect(overlapping).toEqual([]);
    expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
  });

  it('R-OB3: promtool passes the configuration of Prometheus, and each rule names metrics that there are', async () => {
    const config = runPromtool(['check', 'config', join(deploy, 'prometheus/prometheus.yml')]);
    expect(config).toMatchObject({ ok: true });
    const { groups } = parse(await read('prometheus/sluice.rules.yml')) as {
      groups: readonly { rules: readonly { expr: string }[] }[];
    };
    const used = groups
      .flatMap(({ rules }) => rules)
      .flatMap(({ expr }) => expr.match(/\bsluice_\w+/g) ?? []);
    expect(used.length).toBeGreaterThan(10);
    expect(await metricsThatAreNot(used)).toEqual([]);
  });
});

async function metricsThatAreNot(used: readonly string[]): Promise<string[]> {
  const engine = await openEngine({ database: freshPglite() });
  const text = await withAlertMetrics(createMetrics(engine, engine), engine).text();
  await engine.close();
  const types = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)];
  const known = new Set(
    types.flatMap(([, name = '', type]) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
  return [...new Set(used)].filter((name) => !known.has(name));
}

describe('Docker', () => {
  const secrets = {
    POSTGRES_PASSWORD: 'a',
    ADMIN_KEY: 'b',
    WORKER_KEY: 'c',
    GRAFANA_PASSWORD: 'd',
  };
  const compose = (env: Readonly<Record<string, string>>) =>
    runProgram(
      { program: 'docker-compose', debianPackage: 'docker-compose' },
      ['-f', join(deploy, 'docker-compose.yml'), 'config'],
      { env },
    );

  it('docker-compose takes the file, and needs each secret', () => {
    const { ok, stdout } = compose(secrets);
    expect(ok).toBe(true);
    const { services } = parse(stdout) as {
      services: Record<string, { depends_on?: Record<string, { condition: string }> }>;
    };
    expect(Object.keys(services)).toEqual(expect.arrayContaining(['worker', 'grafana']));
    // The keys are stored before a server starts.
    expect(services.server?.depends_on?.keys?.condition).toBe('service_completed_successfully');
    for (const missing of ['POSTGRES_PASSWORD', 'ADMIN_KEY', 'WORKER_KEY', 'GRAFANA_PASSWORD']) {
      const { ok: isTaken, output } = compose({ ...secrets, [missing]: '' });
      expect([missing, isTaken]).toEqual([missing, false]);
      expect(output).toContain('docs/operations.md');
    }
  });

  it('the Dockerfile has no fault that a linter finds, and does not end as root', async () => {
    const text = await read('docker/Dockerfile');
    expect(validateDockerfile(text).map(({ message }) => message)).toEqual([]);
    const users = [...text.matchAll(/^USER (\S+)$/gm)].map(([, user]) => user);
    expect(users.at(-1)).toBe('node');
  });
});

describe('systemd', () => {
  it.each(['sluice.service', 'sluice-worker.service'])(
    'systemd-analyze has nothing against %s',
    (unit) => {
      const { ok, output } = runProgram({ program: 'systemd-analyze', debianPackage: 'systemd' }, [
        'verify',
        '--man=no',
        join(deploy, 'systemd', unit),
      ]);
      const about = output.split('\n').filter((line) => line.includes(unit));
      expect({ ok, about }).toEqual({ ok: true, about: [] });
    },
  );
});

/** As `sluice keys generate` writes it. */
const newKey = () => newKeyText().text;

describe('the Helm chart', () => {
  const chart = join(deploy, 'helm/sluice');
  const least = {
    databaseUrl: 'postgres://sluice@postgres/sluice',
    keys: { admin: newKey(), worker: newKey() },
  };
  const most = {
    existingSecret: 'made-elsewhere',
    server: { replicas: 3, env: { SLUICE_LOG_LEVEL: 'warn' }, openMetrics: true },
    worker: { enabled: true, image: 'app/tasks:1', env: { MODEL: 'gpt-4o' } },
    keda: { enabled: true },
  };

  it.each([
    ['the least that it needs', least],
    ['workers', { ...least, worker: most.worker }],
    ['everything', most],
  ])('renders %s into objects of which Kubernetes and KEDA know every field', (_, values) => {
    const rendered = renderChart(chart, values);
    expect(rendered.length).toBeGreaterThan(2);
    expect(faultsOf(rendered)).toEqual([]);
    expect(danglingReferences(rendered, 'existingSecret' in values)).toEqual([]);
  });

  it('a field that Kubernetes does not know is found', () => {
    const [deployment] = renderChart(chart, least).filter(({ kind }) => kind === 'Deployment');
    const spec = { replica: 2 };
    const wrong = { ...deployment, spec } as unknown as Rendered;
    expect(faultsOf([wrong]).join()).toContain('replica');
  });

  it('refuses to render without what it needs, and names it', () => {
    expect(() => renderChart(chart, {})).toThrow('databaseUrl or existingSecret is needed');
    const { keys } = least;
    expect(() => renderChart(chart, { ...least, keys: { ...keys, admin: '' } })).toThrow(
      'keys.admin',
    );
    expect(() => renderChart(chart, { ...least, worker: { enabled: true } })).toThrow(
      'worker.image',
    );
  });

  it('its schema takes its values and these, and refuses one that is misspelt', async () => {
    const schema = Compile(JSON.parse(await read('helm/sluice/values.schema.json')) as object);
    const values = parse(await read('helm/sluice/values.yaml')) as object;
    for (const taken of [values, least, most]) expect(schema.Check(taken)).toBe(true);
    expect(schema.Check({ ...values, replicas: 2 })).toBe(false);
    expect(schema.Check({ ...values, databaseUrl: 'mysql://x' })).toBe(false);
  });
});

/** Of which type an object must be, by its version and kind. */
const types: Readonly<Record<string, readonly [module: string, type: string]>> = {
  'apps/v1 Deployment': ['kubernetes-models/apps/v1', 'IDeployment'],
  'v1 Service': ['kubernetes-models/v1', 'IService'],
  'v1 Secret': ['kubernetes-models/v1', 'ISecret'],
  'policy/v1 PodDisruptionBudget': ['kubernetes-models/policy/v1', 'IPodDisruptionBudget'],
  'keda.sh/v1alpha1 ScaledObject': ['@kubernetes-models/keda/keda.sh/v1alpha1', 'IScaledObject'],
  'keda.sh/v1alpha1 TriggerAuthentication': [
    '@kubernetes-models/keda/keda.sh/v1alpha1',
    'ITriggerAuthentication',
  ],
};

/** The compiler refuses a literal with a field too many, of another type, or missing. */
function faultsOf(rendered: readonly Rendered[]): string[] {
  const lines = rendered.map((object, index) => {
    const known = types[`${object.apiVersion} ${object.kind}`];
    if (known === undefined) return `unknown(${JSON.stringify(object.kind)});`;
    const [module, type] = known;
    const literal = JSON.stringify(object, null, 1);
    return `import type { ${type} as Type${index} } from '${module}';\nexport const object${index}: Type${index} = ${literal};`;
  });
  const file = join(import.meta.dirname, 'rendered-chart.ts');
  const options: ts.CompilerOptions = {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
  };
  const host = ts.createCompilerHost(options);
  const inMemory: ts.CompilerHost = {
    ...host,
    fileExists: (path) => path === file || host.fileExists(path),
    readFile: (path) => (path === file ? lines.join('\n') : host.readFile(path)),
    getSourceFile: (path, version) =>
      path === file
        ? ts.createSourceFile(path, lines.join('\n'), version)
        : host.getSourceFile(path, version),
  };
  const program = ts.createProgram([file], options, inMemory);
  return ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

/** Names of Secrets, Deployments and Services in one object that no other object has. */
function danglingReferences(rendered: readonly Rendered[], hasOwnSecret: boolean): string[] {
  const names = (kind: string) =>
    rendered.filter((object) => object.kind === kind).map(({ metadata }) => metadata.name);
  const secrets = hasOwnSecret ? ['made-elsewhere'] : names('Secret');
  const text = JSON.stringify(rendered);
  const found = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, name = '']) => name);
  const dangling = (used: readonly string[], there: readonly string[]) =>
    used.filter((name) => !there.includes(name));
  return [
    ...dangling(found(/"secretKeyRef":\{"name":"([^"]+)"/g), secrets),
    ...dangling(found(/"scaleTargetRef":\{"name":"([^"]+)"/g), names('Deployment')),
    ...dangling(found(/http:\/\/([\w-]+)[.:]/g), names('Service')),
  ];
}
