export { buildApp } from './app.js';
export type { App, AppOptions } from './app-parts.js';
export { createMetrics } from './metrics.js';
export type { EventSource, Metrics, Progress, Readiness, ServerHealth } from './ports.js';
export type { Provisioner, Wish } from './provisioner/provisioner.js';
export { serve, type RunningServer, type ServeOptions } from './serve.js';
