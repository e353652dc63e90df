import { setImmediate as nextTurn } from 'node:timers/promises';

const atOnce = 1_000;

/** For as many as there may be: after each thousand, everything else that waits gets its turn. */
export async function eachGivingWay<Item>(
  items: readonly Item[],
  act: (item: Item) => void,
): Promise<void> {
  for (let from = 0; from < items.length; from += atOnce) {
    if (from > 0) await nextTurn();
    for (const item of items.slice(from, from + atOnce)) act(item);
  }
}
