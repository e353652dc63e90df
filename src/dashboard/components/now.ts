import { useEffect, useState } from 'preact/hooks';

const everyMs = 1_000;
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** The time, once a second while somebody looks; one timer for all. */
export function useNow(): number {
  const [nowMs, setNow] = useState(() => Date.now());
  useEffect(() => {
    const listener = () => {
      if (!document.hidden) setNow(Date.now());
    };
    listeners.add(listener);
    timer ??= setInterval(() => {
      for (const each of [...listeners]) each();
    }, everyMs);
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }, []);
  return nowMs;
}
