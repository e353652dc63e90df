import OpenAI from 'openai';

// What the workers of this lab run besides: calls of a service that may be away or refuse.
const service = process.env.SERVICE_URL;

export const ask = {
  type: 'ask',
  run: async (_parameters, { signal }) => {
    const response = await fetch(service, { signal });
    const text = await response.text();
    // As the clients of services throw it: with the status, and the headers.
    if (!response.ok) {
      const { status, headers } = response;
      throw Object.assign(new Error(`The service answered ${status}`), { status, headers });
    }
    return text;
  },
};

const openai = new OpenAI({ apiKey: 'key', baseURL: `${service}/v1`, maxRetries: 0 });

export const complete = {
  type: 'complete',
  run: async (parameters, { signal }) => {
    const content = JSON.stringify(parameters);
    const messages = [{ role: 'user', content }];
    await openai.chat.completions.create({ model: 'stand-in', messages }, { signal });
  },
};
