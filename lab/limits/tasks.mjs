// What the workers of the lab run. Plain JavaScript: twenty workers need no compiler each.
import { setTimeout as delay } from 'node:timers/promises';

const standIn = process.env.STAND_IN_URL;

export const noop = { type: 'noop', run: () => null };

export const sleep = {
  type: 'sleep',
  run: async ({ ms }) => {
    await delay(ms);
    return null;
  },
};

/** Calls the stand-in, which answers after `hold_ms`; `tokens` is what the call really used. */
export const call = {
  type: 'call',
  run: async ({ hold_ms = 0, tokens }, { task, attempt, signal, usage }) => {
    const query = `task=${task.taskId}&queue=${task.queue}&attempt=${attempt}&hold_ms=${hold_ms}`;
    const response = await fetch(`${standIn}/?${query}&sent_at=${Date.now()}`, { signal });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`The stand-in answered ${response.status}`);
    if (tokens !== undefined) usage({ tokens });
    return null;
  },
};
