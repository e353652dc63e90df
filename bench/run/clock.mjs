/** The machine's own clock, which all of its processes share. */
export function nowMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}
