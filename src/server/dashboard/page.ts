import type { App } from '../app-type.js';
import { escapeHtml } from '../html.js';
import { assetNames } from './assets.js';

/** What the page is told when it is loaded. `src/dashboard/config.ts` reads it. */
export interface PageConfig {
  /** Who looks at it; null: anybody on this machine. */
  readonly name: string | null;
  readonly may: Abilities;
  /** Pages whose calls this server answers. */
  readonly has: OptionalPages;
  /** A badge, for example "production". */
  readonly environment: string | null;
  /** Whether there is a session to end. */
  readonly canSignOut: boolean;
  /** Whether parameters and results are shown as they are. */
  readonly isRedacted: boolean;
}

export interface OptionalPages {
  readonly alerts: boolean;
  readonly audit: boolean;
}

/** Which actions the page offers. Whether one is allowed is decided where it is called. */
export interface Abilities {
  readonly read: boolean;
  /** Submit, cancel and re-prioritise single tasks. */
  readonly submit: boolean;
  /** Pause, resume, replay, drain, cancel many. */
  readonly operate: boolean;
  readonly admin: boolean;
}

export function optionalPages(app: App): OptionalPages {
  const answers = (path: string) => app.scopedRoutes().some((route) => route.path === path);
  return { alerts: answers('/api/v1/alerts'), audit: answers('/api/v1/audit') };
}

/** No inline script, no inline style, nothing from elsewhere. */
export const dashboardPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const icon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%230b7285'/%3E%3Cpath d='M3 5.5h10M3 8h7M3 10.5h4' stroke='%23fff' stroke-width='1.6' stroke-linecap='round'/%3E%3C/svg%3E";

/**
 * `prefix` leads from the address of the page to its folder: the files are found under any base path, also behind a
 * proxy that takes a part of the path away.
 */
export function renderDashboardPage(config: PageConfig, prefix: string): string {
  const { script, style } = assetNames();
  const told = escapeHtml(JSON.stringify(config));
  const at = escapeHtml(prefix);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="sluice-dashboard" content="${told}">
<title>Sluice</title>
<link rel="icon" href="${icon}">
<link rel="stylesheet" href="${at}assets/${style}">
<script type="module" src="${at}assets/${script}"></script>
</head>
<body>
<div id="app"></div>
<noscript>The dashboard needs JavaScript. The same numbers: sluice queues, sluice tasks, sluice workers.</noscript>
</body>
</html>
`;
}
