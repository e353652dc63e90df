import { InvalidArgumentError, type Command } from 'commander';
import { isScope, scopes, type Scope } from '../../domain/scopes.js';
import type { KeyApi, KeyDraft, KeyView, SessionView } from '../../protocol/keys-api.js';
import {
  createdKeyToWire,
  keyPageToWire,
  keyToWire,
  sessionListToWire,
  sessionToWire,
} from '../../protocol/keys-wire.js';
import type { StoredKeys } from '../../engine/stored-keys.js';
import { anybody } from '../../protocol/caller.js';
import { defined } from '../../protocol/defined.js';
import { CliError } from '../failure.js';
import { names } from '../options.js';
import { paint, printJson, printLine, printNote, printTable } from '../output.js';
import { everyPage } from '../pages.js';
import { readableAge } from '../readable.js';
import { apiKeyOption, remoteApi } from '../remote.js';
import { loadServeConfig, withDatabaseOptions } from '../serve-config.js';
import { defaultUrl } from '../server-url.js';

interface KeyOptions {
  readonly url?: string;
  readonly apiKey?: string;
  readonly json?: boolean;
}

interface CreateOptions extends KeyOptions {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly expires?: number;
  readonly passesCeilings?: boolean;
  readonly queues?: readonly string[];
  readonly ownTasks?: boolean;
  readonly keyFromEnv?: string;
}

export function keysCommand(program: Command): void {
  const keys = program
    .command('keys')
    .description('API keys: who may call. On the database itself, or over a server with --url');
  const list = withKeyOptions(keys.command('list', { isDefault: true }).description('List them'));
  list.action(async (options: KeyOptions) => runList(list, options));
  const create = withKeyOptions(
    keys
      .command('create')
      .description('Make one; it is printed once, and only its hash is kept')
      .requiredOption('--name <name>', 'for people, like ci')
      .requiredOption(
        '--scopes <scopes>',
        `what it may do: ${scopes.join(', ')}, separated by commas; admin may all`,
        scopeList,
      )
      .option(
        '--expires <time>',
        'like 90d, 12h or 30m; else it is good until revoked',
        lifeSeconds,
      )
      .option('--passes-ceilings', 'its submits pass when a ceiling refuses all others')
      .option('--queues <patterns>', 'the queues it reaches, like gpt-*,mail; else all', names)
      .option('--own-tasks', 'it reaches only tasks that were submitted with it')
      .option(
        '--key-from-env <variable>',
        'store the key in this variable, made by "sluice keys generate"; again changes nothing',
      ),
  );
  create.action(async (options: CreateOptions) => runCreate(create, options));
  keys
    .command('generate')
    .description('Print a new key and store nothing: "create --key-from-env" makes it good')
    .action(runGenerate);
  const revoke = withKeyOptions(
    keys.command('revoke <id>').description('End one, and whoever signed in with it'),
  );
  revoke.action(async (id: string, options: KeyOptions) => runRevoke(revoke, id, options));
  const sessions = withKeyOptions(
    keys.command('sessions <id>').description('List who is signed in with a key'),
  );
  sessions.action(async (id: string, options: KeyOptions) => runSessions(sessions, id, options));
  const signOut = withKeyOptions(
    keys.command('sign-out <id> <session>').description('End one session of a key'),
  );
  signOut.action(async (id: string, session: string, options: KeyOptions) =>
    runSignOut(signOut, [id, session], options),
  );
}

function withKeyOptions(command: Command): Command {
  return withDatabaseOptions(command)
    .option('--url <url>', 'a server to ask instead, with an admin key')
    .addOption(apiKeyOption())
    .option('--json', 'the answer as the API gives it, for programs');
}

async function runCreate(command: Command, options: CreateOptions): Promise<void> {
  if (options.keyFromEnv !== undefined) {
    await adoptKey(command, options, options.keyFromEnv);
    return;
  }
  const created = await withKeys(command, options, (api) => api.createKey(draftOf(options)));
  if (options.json === true) {
    printJson(createdKeyToWire(created));
    return;
  }
  printNote(`Key ${created.id} for ${created.name}. This is the only time it is shown:`);
  printLine(created.key);
  if (created.isFirst) {
    printNote('It is the first: from now on every call needs a key. Commands take SLUICE_API_KEY.');
    if (!created.scopes.includes('admin')) {
      printNote('It may not make keys: make one with --scopes admin, on the database itself.');
    }
  }
}

function draftOf(options: CreateOptions): KeyDraft {
  const { name, scopes: given, expires, passesCeilings, queues, ownTasks } = options;
  return {
    ...{ name, scopes: given },
    ...defined({ expiresInSeconds: expires, passesCeilings, queues, ownTasks }),
  };
}

/** Prints no key: whoever set the variable has it, and the log of a container is read by others. */
async function adoptKey(command: Command, options: CreateOptions, variable: string): Promise<void> {
  if (namedServer(command, options) !== undefined) {
    throw new CliError('--key-from-env works on the database itself: leave out --url.', {
      next: 'If SLUICE_URL is set, name the database with --database-url.',
      exitCode: 2,
    });
  }
  const text = process.env[variable] ?? '';
  const { keyIdIn } = await import('../../engine/key-text.js');
  const id = keyIdIn(text);
  if (id === null) {
    const what = text === '' ? 'is not set' : 'has no valid key';
    throw new CliError(`The variable ${variable} ${what}.`, {
      next: '"sluice keys generate" prints a key for it.',
      exitCode: 2,
    });
  }
  const made = await onDatabase(command, (api) => api.adoptKey(text, draftOf(options)));
  if (options.json === true) printJson({ id, is_new: made !== null });
  else printLine(`Key ${id} for ${options.name} is ${made === null ? 'there already' : 'stored'}`);
}

async function runGenerate(): Promise<void> {
  const { newKeyText } = await import('../../engine/key-text.js');
  printLine(newKeyText().text);
}

async function runList(command: Command, options: KeyOptions): Promise<void> {
  const items = await withKeys(command, options, (api) => everyPage((page) => api.listKeys(page)));
  if (options.json === true) printJson(keyPageToWire({ items, nextCursor: null }));
  else if (items.length === 0) printLine('No API keys: "sluice keys create" makes one.');
  else printKeys(items);
}

async function runRevoke(command: Command, id: string, options: KeyOptions): Promise<void> {
  const key = await withKeys(command, options, (api) => api.revokeKey(id));
  if (options.json === true) printJson(keyToWire(key));
  else printLine(`${key.id} (${key.name}) is revoked; servers refuse it within a second`);
}

async function runSessions(command: Command, id: string, options: KeyOptions): Promise<void> {
  const sessions = await withKeys(command, options, (api) => api.listSessions(id));
  if (options.json === true) printJson(sessionListToWire(sessions));
  else if (sessions.length === 0) printLine(`Nobody is signed in with ${id}.`);
  else printSessions(sessions);
}

async function runSignOut(
  command: Command,
  [id, sessionId]: readonly [string, string],
  options: KeyOptions,
): Promise<void> {
  const session = await withKeys(command, options, (api) => api.endSession(id, sessionId));
  if (options.json === true) printJson(sessionToWire(session));
  else printLine(`Session ${session.id} is signed out; servers refuse it within a second`);
}

/** A flag that names the database or the server counts more than a variable that names the other. */
async function withKeys<Answer>(
  command: Command,
  options: KeyOptions,
  use: (api: KeyApi) => Promise<Answer>,
): Promise<Answer> {
  const server = namedServer(command, options);
  return server === undefined
    ? onDatabase(command, use)
    : use(await remoteApi({ url: server, apiKey: options.apiKey }));
}

/** Undefined: the database itself. */
function namedServer(command: Command, { url }: KeyOptions): string | undefined {
  const { data, databaseUrl } = command.opts<{ data?: string; databaseUrl?: string }>();
  const namesDatabase = data !== undefined || databaseUrl !== undefined;
  if (url !== undefined && namesDatabase) {
    throw new CliError('--url names a server: leave out --data and --database-url.', {
      exitCode: 2,
    });
  }
  const server = url ?? (namesDatabase ? undefined : process.env.SLUICE_URL);
  return server === '' ? undefined : server;
}

async function onDatabase<Answer>(
  command: Command,
  use: (api: StoredKeys) => Promise<Answer>,
): Promise<Answer> {
  const { database } = await loadServeConfig(command);
  const [{ openDatabase }, { StoredKeys }, { migrate }, { silentLog }] = await Promise.all([
    import('../../engine/open-engine.js'),
    import('../../engine/stored-keys.js'),
    import('../../store/migrate.js'),
    import('../../runtime/log.js'),
  ]);
  const db = await openDatabase(database, silentLog).catch((error: unknown) => {
    throw explain(error);
  });
  try {
    await migrate(db);
    return await use(new StoredKeys(db, () => null, atTheDatabase));
  } finally {
    await db.close();
  }
}

/** Who needs no key, as the audit names them. */
const atTheDatabase = { ...anybody, actor: { ...anybody.actor, kind: 'local' } } as const;

function explain(error: unknown): unknown {
  if (!(error instanceof Error) || error.name !== 'DataFolderInUseError') return error;
  return new CliError(error.message, {
    next: `Is it a server? Then ask it: add --url ${defaultUrl}`,
    cause: error,
  });
}

function printKeys(keys: readonly KeyView[]): void {
  const now = new Date();
  const newestFirst = keys.toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime());
  printTable(
    [
      { title: 'key' },
      { title: 'name', least: 10 },
      { title: 'scopes', least: 14 },
      { title: 'reaches', least: 10, spare: 2 },
      { title: 'made', spare: 1 },
      { title: 'used', spare: 3 },
      { title: 'state', least: 15 },
    ],
    newestFirst.map((key) => [
      key.id,
      key.name,
      key.scopes.join(', ') + (key.passesCeilings ? ', passes ceilings' : ''),
      reachText(key),
      readableAge(key.createdAt, now),
      key.lastUsedAt === null ? 'never' : readableAge(key.lastUsedAt, now),
      stateText(key, now),
    ]),
  );
}

function printSessions(sessions: readonly SessionView[]): void {
  const now = new Date();
  printTable(
    [
      { title: 'session' },
      { title: 'from', least: 10 },
      { title: 'signed in', spare: 1 },
      { title: 'used', spare: 2 },
    ],
    sessions.map(({ id, signedInFrom, createdAt, lastUsedAt }) => [
      id,
      signedInFrom ?? 'unknown',
      readableAge(createdAt, now),
      lastUsedAt === null ? 'never' : readableAge(lastUsedAt, now),
    ]),
  );
}

function reachText({ queues, ownTasks }: KeyView): string {
  const tasks = ownTasks ? 'own tasks' : 'all';
  return queues === null ? tasks : `${tasks} in ${queues.join(', ')}`;
}

function stateText({ revokedAt, expiresAt }: KeyView, now: Date): string {
  if (revokedAt !== null) return paint('red', 'revoked');
  if (expiresAt === null) return 'good';
  return expiresAt > now ? `good until ${expiresAt.toISOString()}` : paint('yellow', 'expired');
}

function scopeList(text: string): Scope[] {
  const given = names(text);
  const known = given.filter(isScope);
  if (known.length > 0 && known.length === given.length) return known;
  throw new InvalidArgumentError(`There are ${scopes.join(', ')}, separated by commas.`);
}

const unitSeconds: ReadonlyMap<string, number> = new Map([
  ['s', 1],
  ['m', 60],
  ['h', 3_600],
  ['d', 86_400],
]);
const longestDays = 3_650;

function lifeSeconds(text: string): number {
  const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = Number(count) * (unitSeconds.get(unit) ?? NaN);
  if (seconds >= 1 && seconds <= longestDays * 86_400) return seconds;
  throw new InvalidArgumentError(`It must be like 90d, 12h, 30m or 45s, up to ${longestDays}d.`);
}
