export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;

/** `pretty` for people, `json` for programs. */
export const logFormats = ['pretty', 'json'] as const;
export type LogFormat = (typeof logFormats)[number];
