/** `href('queues', 'a/b')` is `#/queues/a%2Fb`. */
export function href(...segments: readonly string[]): string {
  return `#/${segments.map(encodeURIComponent).join('/')}`;
}
