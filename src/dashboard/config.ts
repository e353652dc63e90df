/** What `src/server/dashboard/page.ts` wrote into the page. */
export interface Config {
  readonly name: string | null;
  readonly may: {
    readonly read: boolean;
    readonly submit: boolean;
    readonly operate: boolean;
    readonly admin: boolean;
  };
  /** Pages that not every server has. */
  readonly has: { readonly alerts: boolean; readonly audit: boolean };
  readonly environment: string | null;
  readonly canSignOut: boolean;
  readonly isRedacted: boolean;
}

export const config: Config = readConfig();

/** The folder that the dashboard is served from: the script is in its `assets`. */
export const baseUrl = new URL('..', import.meta.url);

function readConfig(): Config {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="sluice-dashboard"]');
  return JSON.parse(meta?.content ?? '{}') as Config;
}
