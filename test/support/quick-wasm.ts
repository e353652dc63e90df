/**
 * For Node: compile WebAssembly once and quickly. To make the code of embedded Postgres faster as it
 * runs pays off in a server; in a process that lives for seconds it is 40 % of the CPU.
 */
export const quickWasm = '--liftoff-only';
