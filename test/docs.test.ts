import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { buildProgram } from '../src/cli/program.js';
import { serveSettings } from '../src/runtime/config.js';
import { postgresSettings } from '../src/store/session-settings.js';

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

const documents = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
  'examples/README.md',
];

describe.each(documents)('%s', (path) => {
  const prose = withoutCode(read(path));

  it('has no link that leads nowhere', () => {
    const targets = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target ?? '');
    expect(targets.filter((target) => !leadsSomewhere(path, target))).toEqual([]);
  });

  it('names no file that does not exist', () => {
    const named = [...prose.matchAll(/`((?:src|test|docs|scripts|bench|examples)\/[\w./-]+)`/g)];
    const files = named.map(([, file]) => file ?? '');
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });

  it('shows no command that the command line does not know', () => {
    const lines = [...read(path).matchAll(/\bsluice ((?:[a-z]+ ?)+(?:[^`\n#]*))/g)];
    const commands = lines.map(([, line]) => line ?? '').filter((line) => line.includes('--'));
    expect(commands.flatMap(unknownFlags)).toEqual([]);
  });
});

describe('README.md', () => {
  const readme = read('README.md');

  it.each(['npm ci && npm run demo', 'npm ci && npm test'])(
    'says %s on a line alone',
    (command) => {
      expect(readme.split('\n')).toContain(command);
    },
  );

  it('shows the example that runs', () => {
    const [, shown] = /<!-- examples\/quickstart\.ts -->\s+```ts\n([^]*?)```/.exec(readme) ?? [];
    expect(shown).toBe(read('examples/quickstart.ts'));
  });

  it('shows an example that works', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-quickstart-'));
    try {
      const tsx = join(root, 'node_modules/tsx/dist/cli.mjs');
      const example = join(root, 'examples/quickstart.ts');
      const printed = execFileSync(process.execPath, [tsx, example], {
        cwd: folder,
        encoding: 'utf8',
      });
      expect(readme).toContain(`prints \`${printed.trim()}\``);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe.each(['docs/guide.md', 'docs/tracing.md', 'docs/write-a-worker.md'])('%s', (page) => {
  const shown = /<!-- (examples\/\S+) -->\s+```\w+\n([^]*?)```/g;
  const pieces = [...read(page).matchAll(shown)].flatMap(([, file = '', code = '']) =>
    code.split('// …\n').map((piece) => ({ file, piece })),
  );

  it('shows lines of the examples that run, and no others', () => {
    expect(pieces).not.toEqual([]);
    const isShown = ({ file, piece }: (typeof pieces)[number]) =>
      unindented(read(file)).includes(unindented(piece));
    expect(pieces.filter((piece) => !isShown(piece))).toEqual([]);
  });
});

describe('docs/guarantees.md', () => {
  const rows = read('docs/guarantees.md')
    .split('\n')
    .filter((line) => line.startsWith('|') && line.includes('.ts`'));

  it.each(rows.map((row) => [(row.split('|')[1] ?? '').trim(), row]))(
    'is right about the test of: %s',
    (_, row) => {
      const files = [...row.matchAll(/`([\w./-]+\.ts)`/g)].map(([, file]) => read(file ?? ''));
      const tags = row.match(/R-[A-Z]{2}\d+/g) ?? [];
      const isShown = (tag: string) => files.some((file) => new RegExp(`${tag}\\b`).test(file));
      expect(tags.filter((tag) => !isShown(tag))).toEqual([]);
    },
  );
});

describe('docs/operations.md', () => {
  const operations = read('docs/operations.md');
  const settings = Object.values(serveSettings);
  const rows = tableRows(section(operations, 'Settings'));

  it('lists every setting with its default, and no other', () => {
    const expected = Object.entries(serveSettings).map(([name, { flag, variables, fallback }]) => [
      name,
      flag ?? '',
      variables.join(', '),
      // Null or an empty list: there is none.
      typeof fallback === 'object' ? '' : String(fallback),
    ]);
    expect(rows.map((cells) => cells.slice(0, 4).map(plain))).toEqual(expected);
  });

  it('names no variable that no setting has', () => {
    const known = new Set<string>([
      ...settings.flatMap(({ variables }) => variables),
      'SLUICE_URL',
      // Of a worker.
      'SLUICE_CONCURRENCY',
      'SLUICE_CLAIM_BATCH',
      'SLUICE_LATENCY_THRESHOLD',
    ]);
    const named = operations.match(/\b(SLUICE_[A-Z_]+|DATABASE_URL)\b/g) ?? [];
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });

  it('names every setting that a session sets', () => {
    const missing = Object.keys(postgresSettings).filter(
      (name) => !operations.includes(`\`${name}\``),
    );
    expect(missing).toEqual([]);
  });

  it('is right that the commands for looking inside take --json', () => {
    const [, commands = ''] = /```sh\n([^]*?)```/.exec(section(operations, 'Looking inside')) ?? [];
    const lines = commands.trim().split('\n');
    expect(lines).toContain('sluice doctor');
    expect(lines.flatMap((line) => unknownFlags(`${line.slice('sluice '.length)} --json`))).toEqual(
      [],
    );
  });

  it('lists every metric, and no other', () => {
    const files = readdirSync(join(root, 'src/server/metrics'))
      .filter((file) => !file.endsWith('.test.ts'))
      .map((file) => read(`src/server/metrics/${file}`));
    const naming =
      /(?:counter|gauge|histogram|counterIn)\(\s*(?:registry,\s*)?'(\w+)'|name(?::| =) 'sluice_(\w+)'/g;
    const made = [...files.join('\n').matchAll(naming)].map(
      ([, short, long]) => `sluice_${short ?? long ?? ''}`,
    );
    const listed = tableRows(section(operations, 'Metrics')).map(([name]) =>
      plain(name ?? '').replace(/\{.*/, ''),
    );
    expect(listed.toSorted()).toEqual(made.toSorted());
  });
});

function unknownFlags(line: string): string[] {
  const words = line.split(/\s+/);
  let command: Command = buildProgram();
  for (const word of words) {
    const next = command.commands.find((candidate) => candidate.name() === word);
    if (next === undefined) break;
    command = next;
  }
  const handsOn = command.registeredArguments.some((argument) => argument.name() === 'words');
  if (handsOn) return [];
  const known = new Set(command.options.map(({ long }) => long));
  const flags = words.filter((word) => word.startsWith('--'));
  return flags.filter((flag) => !known.has(flag)).map((flag) => `${flag} in sluice ${line}`);
}

function leadsSomewhere(from: string, target: string): boolean {
  if (/^[a-z]+:/.test(target)) return true;
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? from : join(dirname(from), path);
  if (!existsSync(join(root, file)) || relative(root, join(root, file)).startsWith('..')) {
    return false;
  }
  return anchor === undefined || anchorsOf(file).has(anchor);
}

/** As GitHub makes them of headings. */
function anchorsOf(file: string): ReadonlySet<string> {
  const headings = withoutCode(read(file)).matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

function withoutCode(markdown: string): string {
  return markdown.replaceAll(/^```[^]*?^```/gm, '');
}

function section(markdown: string, heading: string): string {
  const [, rest = ''] = markdown.split(`\n## ${heading}\n`);
  return rest.split('\n## ')[0] ?? '';
}

/** The cells of the first table, without its head. */
function tableRows(markdown: string): string[][] {
  const lines = markdown.split('\n').filter((line) => line.startsWith('|'));
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
}

function unindented(code: string): string {
  return code.replaceAll(/^ +/gm, '');
}

function plain(cell: string): string {
  return cell.replaceAll('`', '');
}
