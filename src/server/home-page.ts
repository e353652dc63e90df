import { page } from './html.js';

export function renderHomePage(): string {
  return page(
    'Sluice',
    `<h1>Sluice</h1>
<p class="dim">A durable task queue for work that calls slow, rate-limited services.</p>
<nav>
<a href="/docs">HTTP API</a>
<a href="/api/v1/queue/stats">Statistics</a>
<a href="/api/v1/queues">Queues</a>
<a href="/api/v1/workers">Workers</a>
<a href="/api/v1/dlq">Dead letters</a>
<a href="/metrics">Metrics</a>
<a href="/openapi.json">OpenAPI</a>
</nav>`,
  );
}
