import { refusalsOfAnyCall } from '../domain/errors.js';
import { escapeHtml, page } from './html.js';
import type { Field, NamedSchema, Operation, Outline, TypeText } from './openapi-outline.js';

export function renderDocsPage(outline: Outline): string {
  const links = [...outline.groups.map(({ name }) => name), 'Schemas', 'Errors'];
  const groups = outline.groups.map(
    ({ name, description, operations }) => `<h2 id="${anchor(name)}">${escapeHtml(name)}</h2>
<p class="dim">${escapeHtml(description)}</p>
${operations.map(renderOperation).join('\n')}`,
  );
  return page(
    `${outline.title} HTTP API`,
    `<h1>${escapeHtml(outline.title)} HTTP API</h1>
<p class="dim">${escapeHtml(outline.description)}</p>
<nav>${links.map((name) => `<a href="#${anchor(name)}">${escapeHtml(name)}</a>`).join('\n')}
<a href="/openapi.json">openapi.json</a></nav>
${groups.join('\n')}
<h2 id="schemas">Schemas</h2>
${outline.schemas.map(renderSchema).join('\n')}
<h2 id="errors">Errors</h2>
<p class="dim">Every refusal is an application/problem+json document with one of these codes.
Beside the answers that a call lists, any call may be refused with ${refusalsOfAnyCall.map(linkToCode).join(', ')}.</p>
${table(
  ['Code', 'Status', 'Meaning'],
  outline.errors.map(({ code, status, title }) => [
    `<code id="${code}">${code}</code>`,
    String(status),
    escapeHtml(title),
  ]),
)}`,
  );
}

function renderOperation(operation: Operation): string {
  const { method, path, summary, description, parameters, body, example, answers } = operation;
  const needs = operation.scope === null ? 'Needs no key.' : `Needs the scope ${operation.scope}.`;
  return `<details><summary><code><span class="method">${method}</span> ${escapeHtml(path)}</code>
<span class="dim">${escapeHtml(summary)}</span></summary>
${description === '' ? '' : `<p>${escapeHtml(description)}</p>`}
<p class="dim">${escapeHtml(needs)}</p>
${parameters.length === 0 ? '' : renderFields(parameters)}
${body === null ? '' : `<p>Body: ${renderType(body)}</p>`}
${example === undefined ? '' : `<pre>${escapeHtml(JSON.stringify(example, null, 2))}</pre>`}
${table(
  ['Status', 'Answer'],
  answers.map(({ status, type, codes }) => [
    status,
    codes.length === 0 ? renderType(type) : codes.map(linkToCode).join(', '),
  ]),
)}</details>`;
}

function linkToCode(code: string): string {
  return `<a href="#${code}"><code>${code}</code></a>`;
}

function renderSchema({ name, description, fields, type }: NamedSchema): string {
  return `<h3 id="schema-${name}">${escapeHtml(name)}</h3>
${description === '' ? '' : `<p>${escapeHtml(description)}</p>`}
${fields.length === 0 ? `<p>${renderType(type)}</p>` : renderFields(fields)}`;
}

function renderFields(fields: readonly Field[]): string {
  return table(
    ['Field', 'Type', 'Meaning'],
    fields.map(({ name, type, required, description }) => [
      `<code>${escapeHtml(name)}</code>${required ? '' : '<span class="dim">?</span>'}`,
      renderType(type),
      escapeHtml(description),
    ]),
  );
}

/** Cells are HTML. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const heads = head.map((cell) => `<th>${cell}</th>`).join('');
  const lines = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`);
  return `<div class="scroll"><table><tr>${heads}</tr>\n${lines.join('\n')}</table></div>`;
}

function renderType(type: TypeText): string {
  return type
    .map((part) =>
      typeof part === 'string'
        ? escapeHtml(part)
        : `<a href="#schema-${part.schema}">${escapeHtml(part.schema)}</a>`,
    )
    .join('');
}

function anchor(name: string): string {
  return name.toLowerCase().replaceAll(' ', '-');
}
