import { setFlagsFromString } from 'node:v8';

const flag = '--wasm-tiering-budget';

/** In V8's unit, roughly bytes of code executed. Node 20 has 1,800,000, Node 22 has 13,000,000. */
const budget = 100_000_000;

/**
 * V8 compiles a WebAssembly function again, optimized, after a function has used up its budget. With the default
 * budget that happens to 200 functions of Postgres while it starts, on threads that compete for the same
 * cores: two thirds of the CPU time of a start. With this one a busy function is optimized after about
 * 0.1 s of work. The flag counts for modules that are compiled afterwards. A value given to Node stays.
 */
export function optimizeLater(): void {
  const given = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ');
  if (!given.includes(flag)) setFlagsFromString(`${flag}=${budget}`);
}
