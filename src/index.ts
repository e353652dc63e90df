export * from './client/index.js';
export { connect } from './client/connect.js';
export { Sluice, type OpenOptions } from './client/sluice.js';
export type { TaskEvent } from './protocol/events.js';
export * from './worker/index.js';
