// What the workers of this lab run besides: a call of a service that may be away.
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
