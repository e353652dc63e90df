/** JSON as it was written: a number keeps all its digits, which a double would not. */
export type JsonTree =
  | { readonly kind: 'object'; readonly members: readonly (readonly [string, JsonTree])[] }
  | { readonly kind: 'array'; readonly items: readonly JsonTree[] }
  | { readonly kind: 'string'; readonly value: string }
  /** `true`, `null`, or the digits of a number. */
  | { readonly kind: 'number' | 'boolean' | 'null'; readonly text: string };

const token = /\s*(?:([[\]{},:])|("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*|true|false|null))/y;

/** Throws like `JSON.parse` when the text is none. */
export function parseExact(text: string): JsonTree {
  // It knows the grammar: from here on the text is known to be well-formed.
  JSON.parse(text);
  const tokens: string[] = [];
  token.lastIndex = 0;
  for (;;) {
    const found = token.exec(text);
    if (found === null) break;
    tokens.push(found[1] ?? found[2] ?? found[3] ?? '');
  }
  let at = 0;
  const next = () => tokens[at++] ?? '';

  const value = (): JsonTree => {
    const first = next();
    if (first === '{') return object();
    if (first === '[') return array();
    if (first.startsWith('"')) return { kind: 'string', value: JSON.parse(first) as string };
    const kind = first === 'null' ? 'null' : /^[tf]/.test(first) ? 'boolean' : 'number';
    return { kind, text: first };
  };
  const object = (): JsonTree => {
    const members: [string, JsonTree][] = [];
    if (tokens[at] === '}') at += 1;
    else {
      do {
        const name = JSON.parse(next()) as string;
        at += 1;
        members.push([name, value()]);
      } while (next() === ',');
    }
    return { kind: 'object', members };
  };
  const array = (): JsonTree => {
    const items: JsonTree[] = [];
    if (tokens[at] === ']') at += 1;
    else
      do items.push(value());
      while (next() === ',');
    return { kind: 'array', items };
  };
  return value();
}

export function memberOf(tree: JsonTree, name: string): JsonTree | null {
  if (tree.kind !== 'object') return null;
  return tree.members.find(([known]) => known === name)?.[1] ?? null;
}

export function withoutMember(tree: JsonTree, name: string): JsonTree {
  if (tree.kind !== 'object') return tree;
  return { kind: 'object', members: tree.members.filter(([known]) => known !== name) };
}

/** JSON text again, for people to read and edit. */
export function printExact(tree: JsonTree, indent = ''): string {
  const deeper = `${indent}  `;
  switch (tree.kind) {
    case 'object':
      if (tree.members.length === 0) return '{}';
      return `{\n${tree.members
        .map(([name, member]) => `${deeper}${JSON.stringify(name)}: ${printExact(member, deeper)}`)
        .join(',\n')}\n${indent}}`;
    case 'array':
      if (tree.items.length === 0) return '[]';
      return `[\n${tree.items.map((item) => `${deeper}${printExact(item, deeper)}`).join(',\n')}\n${indent}]`;
    case 'string':
      return JSON.stringify(tree.value);
    case 'number':
    case 'boolean':
    case 'null':
      return tree.text;
  }
}
