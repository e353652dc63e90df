/** Others wait no longer than this. */
const longestTurnMs = 10;

/**
 * Ends the turn of the event loop once it took 10 ms. An answer that comes without input and output is no end of a
 * turn: timers and sockets would wait for ever, a server's own heartbeat among them.
 */
export function turnGiver(): () => Promise<void> {
  let turnBeganMs = performance.now();
  return async () => {
    if (performance.now() - turnBeganMs < longestTurnMs) return;
    await new Promise((resolve) => setImmediate(resolve));
    turnBeganMs = performance.now();
  };
}

/** Does what is done in small steps, with a rest for others every 10 ms. */
export async function inTurns<Result>(steps: Iterator<void, Result>): Promise<Result> {
  const giveTurn = turnGiver();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await giveTurn();
  }
}

/** Does the same with each, as many as there may be. */
export function eachInTurns<Item>(items: Iterable<Item>, act: (item: Item) => void): Promise<void> {
  return inTurns(steps(items, act));
}

const itemsInStep = 100;

function* steps<Item>(items: Iterable<Item>, act: (item: Item) => void): Generator<void, void> {
  let done = 0;
  for (const item of items) {
    act(item);
    done += 1;
    if (done % itemsInStep === 0) yield;
  }
}
