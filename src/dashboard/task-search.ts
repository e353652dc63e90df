const names = ['status', 'queue', 'task_type', 'user_id', 'workflow_id', 'tag', 'text'] as const;

/** Which tasks, as the address and the calls name it. */
export type TaskSearch = Partial<Record<(typeof names)[number], string>>;

export function searchFrom(address: URLSearchParams): TaskSearch {
  const given = names.flatMap((name) => {
    const value = address.get(name)?.trim() ?? '';
    return value === '' ? [] : [[name, value]];
  });
  return Object.fromEntries(given) as TaskSearch;
}
