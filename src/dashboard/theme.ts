import { Store } from './store.js';

export type Theme = 'system' | 'light' | 'dark';

const key = 'sluice-theme';
export const theme = new Store<Theme>(stored());

/** The next of system, light, dark. */
export function switchTheme(): void {
  const order: readonly Theme[] = ['system', 'light', 'dark'];
  const next = order[(order.indexOf(theme.get()) + 1) % order.length] ?? 'system';
  theme.set(next);
  try {
    localStorage.setItem(key, next);
  } catch {
    // A browser that keeps nothing shows the theme of the system the next time.
  }
  applyTheme();
}

export function applyTheme(): void {
  document.documentElement.dataset.theme = theme.get();
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(key);
    return value === 'light' || value === 'dark' ? value : 'system';
  } catch {
    return 'system';
  }
}
