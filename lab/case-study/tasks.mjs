// What the workers of the case study run. Plain JavaScript: eight workers need no compiler each.
const models = process.env.MODELS_URL;

export const infer = {
  type: 'infer',
  run: async ({ task, ms }, { task: { queue }, attempt, signal }) => {
    const response = await fetch(`${models}/call`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ task, model: queue, ms, attempt }),
      signal,
    });
    const answer = await response.json();
    // As the clients of services throw it: with the status, and the headers.
    if (!response.ok) {
      const { status, headers } = response;
      throw Object.assign(new Error(`The model answered ${status}`), { status, headers });
    }
    return answer;
  },
};
