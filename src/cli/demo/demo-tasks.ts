import { defineTask } from '../../client/define-task.js';
import { NonRetriableError } from '../../worker/errors.js';
import type { ModelCall } from './model-server.js';

/** What the workers of the demo run. */
export const chat = defineTask({
  type: 'chat',
  run: async ({ prompt }, { task, attempt, signal }) => {
    if (typeof prompt !== 'string') throw new NonRetriableError('prompt must be a text');
    const call: ModelCall = { model: task.queue, prompt, attempt };
    const response = await fetch(modelUrl(), {
      method: 'POST',
      body: JSON.stringify(call),
      signal,
    });
    if (!response.ok) throw new Error(`${task.queue} answered ${response.status}`);
    return (await response.json()) as { text: string };
  },
});

export const modelUrlVariable = 'SLUICE_DEMO_MODEL_URL';

function modelUrl(): string {
  const url = process.env[modelUrlVariable];
  if (url === undefined) throw new Error(`${modelUrlVariable} says where the model is`);
  return url;
}
