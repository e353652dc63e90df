type Defined<Members> = {
  [Key in keyof Members as undefined extends Members[Key] ? never : Key]: Members[Key];
} & {
  [Key in keyof Members as undefined extends Members[Key] ? Key : never]?: Exclude<
    Members[Key],
    undefined
  >;
};

/** Without the members that are undefined, so that a spread over defaults keeps the defaults. */
export function defined<Members extends object>(members: Members): Defined<Members> {
  const kept: Record<string, unknown> = {};
  for (const key of Object.keys(members)) {
    const value = (members as Record<string, unknown>)[key];
    if (value !== undefined) kept[key] = value;
  }
  return kept as Defined<Members>;
}
