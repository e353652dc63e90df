export * from './client/index.js';
export { Sluice, type OpenOptions } from './client/sluice.js';
export * from './worker/index.js';
