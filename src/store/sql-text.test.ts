import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');

/**
 * Whether the text of a statement is a constant of the program: literals, and names and functions
 * that are made of nothing else. What a function is given may only choose between texts, unless it
 * is such a constant itself.
 */
class Program {
  readonly #files = new Map<string, SourceFile>();

  file(path: string): SourceFile {
    let file = this.#files.get(path);
    if (file === undefined) this.#files.set(path, (file = new SourceFile(path)));
    return file;
  }

  faults(path: string, file = this.file(path)): string[] {
    return file.statements().flatMap((text) => {
      const culprit = this.#culprit(text, file, new Map());
      return culprit === null ? [] : [`${path.slice(root.length + 1)}: ${culprit.getText()}`];
    });
  }

  /** The part that is no constant; null when all are. */
  #culprit(node: ts.Node, file: SourceFile, given: Given): ts.Node | null {
    const each = (nodes: readonly ts.Node[]): ts.Node | null => {
      for (const one of nodes) {
        const culprit = this.#culprit(one, file, given);
        if (culprit !== null) return culprit;
      }
      return null;
    };
    if (ts.isStringLiteralLike(node) || ts.isNumericLiteral(node)) return null;
    if (node.kind === ts.SyntaxKind.TrueKeyword || node.kind === ts.SyntaxKind.FalseKeyword)
      return null;
    if (ts.isTemplateExpression(node))
      return each(node.templateSpans.map((span) => span.expression));
    if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node))
      return each([node.expression]);
    if (ts.isBinaryExpression(node)) return each([node.left, node.right]);
    if (ts.isConditionalExpression(node)) return each([node.whenTrue, node.whenFalse]);
    if (ts.isObjectLiteralExpression(node)) {
      return each(
        node.properties.map((member) =>
          ts.isPropertyAssignment(member) ? member.initializer : member,
        ),
      );
    }
    if (ts.isPropertyAccessExpression(node)) return each([node.expression]);
    if (ts.isIdentifier(node)) return this.#named(node, file, given);
    if (ts.isCallExpression(node)) return this.#called(node, file, given);
    return node;
  }

  #named(node: ts.Identifier, file: SourceFile, given: Given): ts.Node | null {
    if (given.has(node.text)) return given.get(node.text) ?? null;
    if (isParameter(node)) return node;
    const found = this.#find(node.text, file);
    if (found === null || !ts.isVariableDeclaration(found.node)) return node;
    const { initializer } = found.node;
    return initializer === undefined || this.#culprit(initializer, found.file, new Map()) !== null
      ? node
      : null;
  }

  #called(node: ts.CallExpression, file: SourceFile, given: Given): ts.Node | null {
    if (!ts.isIdentifier(node.expression)) return node;
    if (node.expression.text === 'String')
      return node.arguments.every((one) => this.#culprit(one, file, given) === null) ? null : node;
    const found = this.#find(node.expression.text, file);
    const made = found === null ? null : functionOf(found.node);
    if (found === null || made === null) return node;
    // An argument that is no constant does no harm as long as it only chooses.
    const inside: Given = new Map(
      made.parameters.map((parameter, index) => {
        const argument = node.arguments[index];
        const culprit = argument === undefined ? null : this.#culprit(argument, file, given);
        return [parameter.name.getText(), culprit];
      }),
    );
    for (const answer of answersOf(made)) {
      if (this.#culprit(answer, found.file, inside) !== null) return node;
    }
    return null;
  }

  #find(name: string, file: SourceFile): { node: ts.Node; file: SourceFile } | null {
    const here = file.declared.get(name);
    if (here !== undefined) return { node: here, file };
    const from = file.imported.get(name);
    if (from === undefined) return null;
    const other = this.file(from);
    const there = other.declared.get(name);
    return there === undefined ? null : { node: there, file: other };
  }
}

/** By parameter: what is no constant of the argument, or null. */
type Given = ReadonlyMap<string, ts.Node | null>;
type Made = ts.FunctionDeclaration | ts.ArrowFunction | ts.FunctionExpression;

/** Of the function that it stands in: who calls it decides. */
function isParameter({ text, parent }: ts.Identifier): boolean {
  const isIt = new RegExp(`\\b${text}\\b`);
  for (let node: ts.Node = parent; !ts.isSourceFile(node); node = node.parent) {
    if (!ts.isFunctionLike(node)) continue;
    if (node.parameters.some(({ name }) => isIt.test(name.getText()))) return true;
  }
  return false;
}

function functionOf(node: ts.Node): Made | null {
  if (ts.isFunctionDeclaration(node)) return node;
  if (!ts.isVariableDeclaration(node) || node.initializer === undefined) return null;
  const { initializer } = node;
  return ts.isArrowFunction(initializer) || ts.isFunctionExpression(initializer)
    ? initializer
    : null;
}

function answersOf(made: Made): ts.Expression[] {
  if (made.body === undefined) return [];
  if (!ts.isBlock(made.body)) return [made.body];
  const locals = new Map<string, ts.Expression>();
  const answers: ts.Expression[] = [];
  walk(made.body, (node) => {
    if (ts.isVariableDeclaration(node) && node.initializer)
      locals.set(node.name.getText(), node.initializer);
    if (ts.isReturnStatement(node) && node.expression) answers.push(node.expression);
  });
  return [...answers, ...locals.values()].filter(
    (answer) => !ts.isIdentifier(answer) || !locals.has(answer.text),
  );
}

function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node);
  node.forEachChild((child) => walk(child, visit));
}

class SourceFile {
  readonly declared = new Map<string, ts.Node>();
  /** By name: in which file. */
  readonly imported = new Map<string, string>();
  readonly #source: ts.SourceFile;

  constructor(path: string, text = readFileSync(path, 'utf8')) {
    this.#source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
    walk(this.#source, (node) => this.#note(node, path));
  }

  /** The texts that are given to `query` and `run`. */
  statements(): ts.Expression[] {
    const texts: ts.Expression[] = [];
    walk(this.#source, (node) => {
      if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return;
      const [text] = node.arguments;
      if (/^(query|run)$/.test(node.expression.name.text) && text !== undefined) texts.push(text);
    });
    return texts;
  }

  #note(node: ts.Node, path: string): void {
    if (ts.isFunctionDeclaration(node) && node.name) this.declared.set(node.name.text, node);
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name))
      this.declared.set(node.name.text, node);
    if (!ts.isImportDeclaration(node) || !ts.isStringLiteral(node.moduleSpecifier)) return;
    const { text } = node.moduleSpecifier;
    const names = node.importClause?.namedBindings;
    if (!text.startsWith('.') || names === undefined || !ts.isNamedImports(names)) return;
    for (const { name } of names.elements) {
      this.imported.set(name.text, resolve(dirname(path), text.replace(/\.js$/, '.ts')));
    }
  }
}

/** The drivers themselves, and what stands before them, are given the text. */
const drivers =
  /store\/(pg-database|embedded\/open-lite|session-settings|watch-outages|bounded-reads)\.ts$/;

const excused = [
  // LISTEN takes no parameters. The name is made of a UUID of ours, and quoted.
  'store/mail-bell.ts: client.escapeIdentifier(mailChannel(this.#options.recipient))',
  // Files of this package.
  'store/migrate.ts: script',
  // One of two constants; and statements that Postgres wrote, with format and %I.
  'store/partitions.ts: findSql',
  'store/partitions.ts: detach',
  'store/partitions.ts: detach',
];

it('R-AD7: the text of every statement is a constant of the program', () => {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => /^(store|engine|cli|server)\/.*\.ts$/.test(name))
    .filter((name) => !/\.(test|contract)\.ts$/.test(name) && !drivers.test(name))
    .map((name) => join(root, name))
    .filter((path) => /\.(query|run)\b/.test(readFileSync(path, 'utf8')));
  const program = new Program();
  expect(files.length).toBeGreaterThan(30);
  expect(files.flatMap((path) => program.faults(path)).sort()).toEqual(excused.sort());
});

it.each([
  ['a value', 'const f = (name: string) => db.query(`select ${name}`);', 'name'],
  ['a value added', `const f = (name) => db.query('select ' + name);`, 'name'],
  ['a member', 'const f = (task) => db.query(`select ${task.id}`);', 'task'],
  ['what is called like a constant', `const a = '1'; const f = (a) => db.query(a);`, 'a'],
  [
    'what is made from it',
    'const f = (a) => { const sql = `select ${a}`; return db.query(sql); };',
    'sql',
  ],
  [
    'what a function makes from it',
    'const g = (a) => `select ${a}`; const f = (b) => db.query(g(b));',
    'g(b)',
  ],
])('finds %s in a statement', (_name, text, culprit) => {
  const path = join(root, 'store/made-up.ts');
  const faults = new Program().faults(path, new SourceFile(path, text));
  expect(faults).toEqual([`store/made-up.ts: ${culprit}`]);
});

it.each([
  ['a constant', "const a = 'id'; const b = `select ${a}`; db.query(b, [value]);"],
  ['a choice', "const f = (one) => db.query(one ? 'select 1' : 'select 2');"],
  ['a function of constants', "const g = (a) => `select ${a}`; const f = () => db.query(g('1'));"],
])('finds nothing in %s', (_name, text) => {
  const path = join(root, 'store/made-up.ts');
  expect(new Program().faults(path, new SourceFile(path, text))).toEqual([]);
});
