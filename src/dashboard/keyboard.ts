import { go } from './router.js';
import { addressOfKey } from './sections.js';
import { Store } from './store.js';

export const helpIsOpen = new Store(false);

const secondKeyMs = 1_500;

export function watchKeyboard(): void {
  let goneSinceMs = -Infinity;
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const address = addressOfKey(event.key);
    if (event.timeStamp - goneSinceMs < secondKeyMs && address !== undefined) {
      goneSinceMs = -Infinity;
      go(address);
      return;
    }
    goneSinceMs = event.key === 'g' ? event.timeStamp : -Infinity;
    if (event.key === '/') {
      event.preventDefault();
      const search =
        document.querySelector<HTMLInputElement>('main input[type=search]') ??
        document.querySelector<HTMLInputElement>('#find');
      search?.focus();
      search?.select();
    }
    if (event.key === '?') helpIsOpen.set(true);
  });
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.closest('input, textarea, select, dialog') !== null;
}
