// docs/http-api.md, docs/scopes.md, docs/errors.md, docs/states.md and docs/alerts.md, from the routes and their schemas,
// the catalogue of errors, the table of transitions and the table of alert rules in dist; and the rule file of Prometheus
// from the same table. With --check nothing is written: it fails when one is stale.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import prettier from 'prettier';
import { prometheusName, prometheusRules } from '../dist/domain/alerts/prometheus.js';
import { alertNames, alertRules } from '../dist/domain/alerts/rules.js';
import { valueText } from '../dist/domain/alerts/text.js';
import { errorCatalogue } from '../dist/domain/error-catalogue.js';
import { refusalsOfAnyCall } from '../dist/domain/errors.js';
import { allows, scopes } from '../dist/domain/scopes.js';
import { hasEnded, taskStates, transitions } from '../dist/domain/task-state.js';
import { silentLog } from '../dist/runtime/log.js';
import { buildApp } from '../dist/server/app.js';
import { outlineOf } from '../dist/server/openapi-outline.js';

const root = join(import.meta.dirname, '..');
const check = process.argv.includes('--check');
const generated = (from) => `<!-- Generated from ${from} by scripts/generate-docs.mjs -->`;

const confinements = {
  task: 'others: 404',
  filtered: 'its part',
  queue: 'others: 403 or 404',
  worker: 'its own ids and queues',
  refused: '403',
};

const { document, routes } = await describeApp();

const documents = {
  'docs/http-api.md': renderHttpApi(outlineOf(document)),
  'docs/scopes.md': renderScopes(routes),
  'docs/errors.md': renderErrors(),
  'docs/states.md': renderStates(),
  'docs/alerts.md': renderAlerts(),
  'deploy/prometheus/sluice.rules.yml': prometheusRules(),
};

let stale = 0;
for (const [name, text] of Object.entries(documents)) {
  const path = join(root, name);
  const parser = name.endsWith('.yml') ? 'yaml' : 'markdown';
  const wanted = await prettier.format(text, { parser, printWidth: 100, singleQuote: true });
  if (existsSync(path) && readFileSync(path, 'utf8') === wanted) continue;
  if (check) {
    console.error(`${name} is stale: npm run build && node scripts/generate-docs.mjs`);
    stale += 1;
  } else {
    writeFileSync(path, wanted);
    console.log(name);
  }
}
process.exitCode = stale > 0 ? 1 : 0;

/** No route is called, so nothing stands behind them. */
async function describeApp() {
  const events = { subscribe: () => () => undefined };
  const app = buildApp({ api: {}, health: {}, events, metrics: {}, log: silentLog });
  await app.ready();
  const document = app.swagger();
  const routes = app.scopedRoutes();
  await app.close();
  return { document, routes };
}

function renderHttpApi({ groups, schemas }) {
  return `# HTTP API

${generated('the schemas that validate every request')}

JSON over HTTP. Times are RFC 3339 in UTC with milliseconds; durations carry their unit in the name.
Numbers are doubles, also in parameters and results: a whole number beyond 9,007,199,254,740,991 is rounded. Send it as a string.
A field that is not known is refused with 400, its path and the name that was probably meant. Lists are paged: pass \`next_cursor\` of
one answer as \`cursor\` of the next call, until it is null. A refusal is an
\`application/problem+json\` document whose \`code\` is one of [these](errors.md).
Beside the answers that a call lists, any call may be refused with
${refusalsOfAnyCall.map((code) => `[\`${code}\`](errors.md#${code})`).join(', ')}. The same, for
machines: \`/openapi.json\` of a running server; for people: its \`/docs\`.

${groups.map(renderGroup).join('\n')}

## Schemas

A \`?\` marks what may be absent.

${schemas.map(renderSchema).join('\n')}`;
}

function renderGroup({ name, description, operations }) {
  return `## ${name}

${description}

${operations.map(renderOperation).join('\n')}`;
}

function renderOperation({
  method,
  path,
  summary,
  description,
  scope,
  parameters,
  body,
  example,
  answers,
}) {
  return `### ${summary}

\`${method} ${path}\`

${description}

${scope === null ? 'Needs no key.' : `Needs the scope \`${scope}\`.`}

${parameters.length === 0 ? '' : fieldTable('Parameter', parameters)}

${body === null ? '' : `Body: ${typeText(body)}`}

${example === undefined ? '' : `\`\`\`json\n${JSON.stringify(example, null, 2)}\n\`\`\``}

${table(
  ['Status', 'Answer'],
  answers.map(({ status, type, codes }) => [
    status,
    codes.length === 0
      ? typeText(type)
      : codes.map((code) => `[\`${code}\`](errors.md#${code})`).join(', '),
  ]),
)}
`;
}

function renderSchema({ name, description, fields, type }) {
  return `### ${name}

${description}

${fields.length === 0 ? typeText(type) : fieldTable('Field', fields)}
`;
}

function fieldTable(head, fields) {
  return table(
    [head, 'Type', 'Meaning'],
    fields.map(({ name, type, required, description }) => [
      `\`${name}\`${required ? '' : ' ?'}`,
      typeText(type),
      description,
    ]),
  );
}

function renderScopes(routes) {
  const yes = (allowed) => (allowed ? 'yes' : '');
  const rows = routes
    .filter(({ method }) => method !== 'HEAD')
    .toSorted((a, b) => compare(a.path, b.path) || compare(a.method, b.method))
    .map(({ method, path, scope, confined }) => [
      `\`${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}\``,
      yes(scope === 'open'),
      ...scopes.map((one) => yes(allows([one], scope))),
      confinements[confined] ?? '',
    ]);
  return `# Who may call what

${generated('the scope that each route declares')}

Once there is an API key (see [security.md](security.md)). Without a valid key a call is answered 401, with one
that lacks the scope 403. \`HEAD\` goes with \`GET\`. \`/metrics\` needs no key with \`--open-metrics\`.

A key may be confined to queues (\`--queues\`) or to its own tasks (\`--own-tasks\`). The last column says what
each route is for such a key.

${table(['Route', 'no key', ...scopes.map((scope) => `\`${scope}\``), 'confined'], rows)}`;
}

function compare(a, b) {
  return a < b ? -1 : Number(a > b);
}

function renderErrors() {
  const rows = Object.entries(errorCatalogue).map(
    ([code, { status, title }]) => `### ${code}\n\n${status}. ${title}.\n`,
  );
  return `# Errors

${generated('src/domain/error-catalogue.ts')}

Every call that is refused answers with an \`application/problem+json\` document, and every client
throws a \`SluiceError\`, with one of these codes. \`detail\` says what was wrong this time, \`errors\`
which fields by their JSON pointers (\`/max_retries\` over HTTP, \`/maxRetries\` in TypeScript), \`retry_after_seconds\` when to try again where that is known.

${rows.join('\n')}`;
}

function renderStates() {
  const pairs = new Map(transitions.map(({ from, to }) => [`${from} ${to}`, { from, to }]));
  const edges = [...pairs.values()].map(({ from, to }) => {
    const same = transitions.filter((one) => one.from === from && one.to === to);
    const verbs = new Set(same.map(({ verb }) => verb));
    return `  ${node(from)} --> ${to}: ${[...verbs].join(', ')}`;
  });
  const ends = taskStates.filter(hasEnded).map((state) => `  ${state} --> [*]`);
  return `# States

${generated('the table of transitions in src/domain/task-state.ts')}

\`\`\`mermaid
stateDiagram-v2
${[...edges, ...ends].join('\n')}
\`\`\`

Ended are ${taskStates
    .filter(hasEnded)
    .map((state) => `\`${state}\``)
    .join(', ')}. There are no other transitions than these:

${table(
  ['From', 'Verb', 'To', 'When'],
  transitions.map(({ from, verb, to, when }) => [`\`${from}\``, verb, `\`${to}\``, when]),
)}`;
}

function renderAlerts() {
  const rows = alertNames.map((name) => {
    const rule = alertRules[name];
    const limit = `${rule.bad} ${valueText(rule.unit, rule.threshold)}`;
    const time = rule.forSeconds === 0 ? '' : ` for ${valueText('seconds', rule.forSeconds)}`;
    const about = rule.label === undefined ? '' : `, by ${rule.label}`;
    return [`[\`${name}\`](#${name})`, rule.severity, `${limit}${time}${about}`, rule.meaning];
  });
  return `# Alerts

${generated('the table in src/domain/alerts/rules.ts')}

Every server with \`sluice serve\` evaluates these rules, one server at a time, every 10 seconds
(\`--alert-interval-seconds\`; 0 turns it off). The numbers are those of all servers. What fires is kept in Postgres: it
fires once and is resolved once, through restarts. A Sluice that is embedded in a program (\`Sluice.open\`) evaluates nothing.

\`\`\`sh
sluice alerts                                             # what is pending, firing or silenced; --all: every rule
sluice alerts set queue_depth --threshold 20000 --for 600 # PUT /api/v1/alerts/queue_depth
sluice alerts set idle_workers_low --off
sluice alerts set queue_depth                             # back to the defaults
sluice alerts silence queue_depth --seconds 3600 --note 'nightly batch'
\`\`\`

An alert is \`pending\` until its value has been beyond the threshold for the time of its rule. Rules that are about queues or
error codes fire for each of them, at most 20 at once. A silence holds back messages, not the evaluation: what still fires
when the silence ends is told then.

${table(['Alert', 'Severity', 'Fires', 'Meaning'], rows)}

## Telling somebody

\`\`\`sh
export SLUICE_ALERT_WEBHOOK_SECRET=$(node -p "'whsec_' + crypto.randomBytes(32).toString('base64')")
sluice serve --alert-webhook https://example.com/sluice-alerts
sluice serve --alert-webhook https://hooks.slack.com/services/… --alert-webhook-format slack
\`\`\`

Give every server the same settings. Each message is a POST in the form of
[Standard Webhooks](https://www.standardwebhooks.com), with \`webhook-id\`, \`webhook-timestamp\` and
\`webhook-signature\`. Its body is \`{ "type": "alert.firing" | "alert.resolved", "timestamp", "data" }\`, and \`data\` is the alert as
\`GET /api/v1/alerts\` shows it. In Node:

\`\`\`js
import { Webhook } from 'standardwebhooks';
const { type, data } = new Webhook(process.env.SLUICE_ALERT_WEBHOOK_SECRET).verify(body, headers);
\`\`\`

Messages wait in Postgres until they are answered 2xx within 10 seconds, and are delivered in order. After a failure
the next try comes after 2 seconds, later after up to a minute, with the same \`webhook-id\`. After 3 days a message is given up. At
most 1,000 wait; then the oldest go. A message whose answer was lost comes twice: compare the \`webhook-id\`. Redirects are
not followed.

## Prometheus

[deploy/prometheus/sluice.rules.yml](../deploy/prometheus/sluice.rules.yml) has the same rules for Prometheus, with the
default thresholds. \`promtool\` checks it in the tests, and each rule fires and clears there.

\`\`\`yaml
rule_files: [sluice.rules.yml]
scrape_configs:
  - job_name: sluice
    static_configs: [{ targets: ['127.0.0.1:7700'] }]
\`\`\`

Some of them read metrics that are only there while a server evaluates alerts: what it measured last, read from one row.

## Runbooks

${alertNames.map(renderRunbook).join('\n')}`;
}

function renderRunbook(name) {
  const { meaning, look, act, twin, threshold } = alertRules[name];
  return `### ${name}

${meaning} In Prometheus: \`${prometheusName(name)}\`.

Look at:

${look.map(([command, shows]) => `- \`${command}\`: ${shows}`).join('\n')}

Do:

${act.map((one) => `- ${one}`).join('\n')}

\`\`\`promql
${twin(threshold)}
\`\`\`
`;
}

function node(state) {
  return state === 'new' ? '[*]' : state;
}

function typeText(type) {
  return type
    .map((part) =>
      typeof part === 'string' ? escape(part) : `[${part.schema}](#${part.schema.toLowerCase()})`,
    )
    .join('');
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function escape(text) {
  return text.replace(/[|<>*_]/g, (character) => `\\${character}`);
}
