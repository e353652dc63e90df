import { finding, type ChaosHistory, type Finding, type TaskRow } from './history.js';

interface Member {
  readonly key: string;
  readonly place: number;
  readonly row: TaskRow;
}

/** One member at a time, in the order of their submits. */
export function checkWorkflows(history: ChaosHistory): Finding[] {
  const findings: Finding[] = [];
  for (const [workflow, members] of membersOf(history)) {
    const inOrder = members.toSorted((a, b) => a.place - b.place);
    for (const [index, later] of inOrder.entries()) {
      for (const earlier of inOrder.slice(0, index)) {
        const fault = faultOf(earlier, later);
        if (fault === null) continue;
        findings.push(finding(fault, `${workflow}: ${earlier.key} and ${later.key}`));
      }
    }
  }
  return findings;
}

function membersOf({ acknowledged, rows }: ChaosHistory): ReadonlyMap<string, Member[]> {
  const rowById = new Map(rows.map((row) => [row.taskId, row]));
  const members = new Map<string, Member[]>();
  for (const { key, taskId, workflow } of acknowledged) {
    const row = rowById.get(taskId);
    if (workflow === null || row === undefined) continue;
    const all = members.get(workflow.id) ?? [];
    all.push({ key, place: workflow.place, row });
    members.set(workflow.id, all);
  }
  return members;
}

function faultOf(earlier: Member, later: Member): 'two members at once' | 'out of order' | null {
  const meets = earlier.row.attempts.some((one) =>
    later.row.attempts.some(
      (other) => one.from < (other.to ?? Infinity) && other.from < (one.to ?? Infinity),
    ),
  );
  if (meets) return 'two members at once';
  const endedAt = earlier.row.endedAt ?? Infinity;
  return later.row.attempts.some(({ from }) => from < endedAt) ? 'out of order' : null;
}
