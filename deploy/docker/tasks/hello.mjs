import { defineTask } from 'sluice';

export const hello = defineTask({
  type: 'hello',
  run: ({ name = 'world' }) => `Hello, ${String(name)}`,
});
