import { Option, type Command } from 'commander';
import { auditActions, type Actor, type AuditAction } from '../../domain/audit.js';
import type { AuditEntry } from '../../protocol/audit-api.js';
import { auditPageToWire } from '../../protocol/audit-wire.js';
import { defined } from '../../protocol/defined.js';
import { instant, limitOption } from '../options.js';
import { printJson, printLine, printNote, printTable } from '../output.js';
import { oneLine } from '../readable.js';
import { remoteApi, withRemoteOptions, type RemoteOptions } from '../remote.js';

interface AuditOptions extends RemoteOptions {
  readonly actor?: string;
  readonly action?: AuditAction;
  readonly subject?: string;
  readonly from?: Date;
  readonly to?: Date;
  readonly limit: number;
  readonly cursor?: string;
}

export function auditCommand(program: Command): void {
  withRemoteOptions(program.command('audit').description('Who changed what, newest first'))
    .option('--actor <id>', 'only by this key or session, or key, session, local or process')
    .addOption(new Option('--action <action>', 'only this').choices([...auditActions]))
    .option('--subject <name>', 'only of this queue, limit, key, session, worker or task')
    .option('--from <time>', 'only then or later, as 2026-01-31T12:00Z', instant)
    .option('--to <time>', 'only before', instant)
    .addOption(limitOption(20))
    .option('--cursor <cursor>', 'where the last list ended')
    .action(runAudit);
}

async function runAudit(options: AuditOptions): Promise<void> {
  const api = await remoteApi(options);
  const { actor, action, subject, from, to, limit, cursor } = options;
  const filter = defined({ actor, action, subject, from, to });
  const page = await api.listAudit(filter, defined({ limit, cursor }));
  if (options.json === true) {
    printJson(auditPageToWire(page));
    return;
  }
  if (page.items.length === 0) printLine('Nothing was changed.');
  else printEntries(page.items);
  if (page.nextCursor !== null) printNote(`There are more: --cursor ${page.nextCursor}`);
}

function printEntries(entries: readonly AuditEntry[]): void {
  printTable(
    [
      { title: 'when' },
      { title: 'who', least: 10 },
      { title: 'from', spare: 1 },
      { title: 'action', least: 13 },
      { title: 'subject', least: 8 },
      { title: 'change', least: 20, spare: 2 },
    ],
    entries.map((entry) => [
      `${entry.at.toISOString().slice(0, 19)}Z`,
      whoText(entry.actor),
      entry.actor.address ?? '',
      entry.action,
      entry.subject ?? '',
      oneLine(changeText(entry)),
    ]),
  );
}

function whoText({ kind, keyName, keyId }: Actor): string {
  return keyId === null ? kind : `${keyName ?? keyId} (${kind})`;
}

function changeText({ changes, details }: AuditEntry): string {
  const changed = Object.entries(changes).map(
    ([name, { from, to }]) => `${name}: ${JSON.stringify(from)} → ${JSON.stringify(to)}`,
  );
  const told = Object.entries(details).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return [...changed, ...told].join(', ');
}
