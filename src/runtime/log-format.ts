export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;

/** `pretty` for people, `json` for programs. */
export const logFormats = ['pretty', 'json'] as const;
export type LogFormat = (typeof logFormats)[number];

/** Which changes of a task's state get a line. */
export const transitionModes = ['all', 'problems', 'off'] as const;
export type TransitionMode = (typeof transitionModes)[number];
export const defaultTransitionMode: TransitionMode = 'problems';
