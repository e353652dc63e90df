/** For people to read. Takes any URL, also one with several hosts. */
export function hidePassword(url: string): string {
  return url
    .replace(/^([^:]+:\/\/[^:@/?#]*):[^/?#]*@/, '$1:***@')
    .replace(/([?&](?:sentinel)?password=)[^&#]*/gi, '$1***');
}
