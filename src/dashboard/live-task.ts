import { useEffect } from 'preact/hooks';
import { apiUrl } from './http.js';

/** Calls when the task changes, by server-sent events, while somebody looks at the page. */
export function useTaskEvents(taskId: string, onChange: () => void): void {
  useEffect(() => {
    let source: EventSource | null = null;
    const follow = () => {
      source?.close();
      source = null;
      if (document.hidden) return;
      const url = apiUrl('events');
      url.searchParams.set('task_id', taskId);
      source = new EventSource(url);
      source.addEventListener('task', onChange);
    };
    follow();
    document.addEventListener('visibilitychange', follow);
    return () => {
      document.removeEventListener('visibilitychange', follow);
      source?.close();
    };
  }, [taskId, onChange]);
}
