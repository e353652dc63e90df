// docs/http-api.md, docs/errors.md and docs/states.md, from the schemas, the catalogue of errors and
// the table of transitions in dist. With --check nothing is written: it fails when one is stale.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import prettier from 'prettier';
import { errorCatalogue } from '../dist/domain/errors.js';
import { hasEnded, taskStates, transitions } from '../dist/domain/task-state.js';
import { silentLog } from '../dist/runtime/log.js';
import { buildApp } from '../dist/server/app.js';
import { outlineOf } from '../dist/server/openapi-outline.js';

const docs = join(import.meta.dirname, '../docs');
const check = process.argv.includes('--check');
const generated = (from) => `<!-- Generated from ${from} by scripts/generate-docs.mjs -->`;

const documents = {
  'http-api.md': renderHttpApi(outlineOf(await openApiDocument())),
  'errors.md': renderErrors(),
  'states.md': renderStates(),
};

let stale = 0;
for (const [name, text] of Object.entries(documents)) {
  const path = join(docs, name);
  const wanted = await prettier.format(text, { parser: 'markdown', printWidth: 100 });
  if (existsSync(path) && readFileSync(path, 'utf8') === wanted) continue;
  if (check) {
    console.error(`docs/${name} is stale: npm run build && node scripts/generate-docs.mjs`);
    stale += 1;
  } else {
    writeFileSync(path, wanted);
    console.log(`docs/${name}`);
  }
}
process.exitCode = stale > 0 ? 1 : 0;

/** No route is called, so nothing stands behind them. */
async function openApiDocument() {
  const events = { subscribe: () => () => undefined };
  const app = buildApp({ api: {}, health: {}, events, metrics: {}, log: silentLog });
  await app.ready();
  const document = app.swagger();
  await app.close();
  return document;
}

function renderHttpApi({ groups, schemas }) {
  return `# HTTP API

${generated('the schemas that validate every request')}

JSON over HTTP. Times are RFC 3339 in UTC with milliseconds; durations carry their unit in the name.
A field that is not known is refused with 400 and its path. Lists are paged: pass \`next_cursor\` of
one answer as \`cursor\` of the next call, until it is null. A refusal is an
\`application/problem+json\` document whose \`code\` is one of [these](errors.md). The same, for
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
  parameters,
  body,
  example,
  answers,
}) {
  return `### ${summary}

\`${method} ${path}\`

${description}

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

function renderErrors() {
  const rows = Object.entries(errorCatalogue).map(
    ([code, { status, title }]) => `### ${code}\n\n${status}. ${title}.\n`,
  );
  return `# Errors

${generated('the catalogue in src/domain/errors.ts')}

Every call that is refused answers with an \`application/problem+json\` document, and every client
throws a \`SluiceError\`, with one of these codes. \`detail\` says what was wrong this time, \`errors\`
which fields by their JSON pointers, \`retry_after_seconds\` when to try again where that is known.

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
