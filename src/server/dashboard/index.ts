export {
  createDashboard,
  type DashboardOptions,
  type FetchHandler,
  type Viewer,
} from './create-dashboard.js';
export type { Mountable } from './mounted-app.js';
export { toNodeHandler, type NodeHandler } from './node-handler.js';
export type { Redact, Redacted } from './redact.js';
export type { Role } from './roles.js';
