// What importing a module loads at once: type imports are gone, dynamic imports are not taken yet.
const direction = require('./.dependency-cruiser.cjs');

module.exports = {
  forbidden: [
    {
      name: 'client-and-worker-are-light',
      comment: 'they talk HTTP unless asked to embed; nobody pays for a server or a database then',
      severity: 'error',
      from: { path: '^src/(client|worker)/', pathNot: '\\.(test|contract)\\.ts$' },
      to: {
        path: '^(src/(server|store)/|node_modules/(fastify|@fastify|pg|@electric-sql|ioredis|prom-client)/)',
        reachable: true,
      },
    },
    {
      name: 'client-runs-in-any-runtime',
      comment: 'sluice/client in browsers and edge runtimes: no package and no module of Node',
      severity: 'error',
      from: { path: '^src/client/index\\.ts$' },
      to: { pathNot: '^src/', reachable: true },
    },
    {
      name: 'client-in-node-needs-no-package',
      severity: 'error',
      from: { path: '^src/client/node\\.ts$' },
      to: { path: '^node_modules/', reachable: true },
    },
    {
      name: 'package-root-is-light',
      severity: 'error',
      from: { path: '^src/index\\.ts$' },
      to: {
        path: '^(src/(server|store)/|node_modules/(fastify|@fastify|pg|@electric-sql|ioredis|prom-client)/)',
        reachable: true,
      },
    },
    {
      name: 'redis-is-loaded-when-used',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: [
          '\\.(test|contract)\\.ts$',
          '^src/ready/redis/',
          '^src/cli/doctor/check-redis\\.ts$',
        ],
      },
      to: { path: '^node_modules/ioredis/', reachable: true },
    },
  ],
  options: {
    ...direction.options,
    tsPreCompilationDeps: false,
    // Shipped code imports no test: the direction says so.
    exclude: { dynamic: true, path: '\\.(test|contract)\\.ts$' },
    cache: { folder: 'node_modules/.cache/dependency-cruiser-loaded', strategy: 'content' },
  },
};
