/** What must never be, was. */
export class Violation extends Error {
  override readonly name = 'Violation';
  /** The rule that was broken, in a few words. */
  readonly rule: string;

  constructor(rule: string, detail: string) {
    super(`${rule}: ${detail}`);
    this.rule = rule;
  }
}
