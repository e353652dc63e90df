const codePattern = /^[A-Za-z0-9_.:-]{1,100}$/;

/** What can be kept as an error's code; anything else can't be looked for by it. */
export function isErrorCode(value: unknown): value is string {
  return typeof value === 'string' && codePattern.test(value);
}
