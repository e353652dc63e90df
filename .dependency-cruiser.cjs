// Which module may name which. Type imports and dynamic imports count: a layer that only knows the
// types of a higher one is tied to it all the same. What a program loads: see the .loaded file.
const test = '\\.(test|contract)\\.ts$';
const folder = (name) => `^src/${name}/`;

/** A layer may import itself and what is named here, nothing else of src. */
const layers = {
  domain: [],
  protocol: ['domain'],
  runtime: ['domain'],
  store: ['domain', 'protocol', 'runtime'],
  ready: ['domain', 'protocol', 'runtime'],
  engine: ['domain', 'protocol', 'runtime', 'store', 'ready'],
  server: ['domain', 'protocol', 'runtime', 'store', 'ready', 'engine'],
  worker: ['domain', 'protocol', 'runtime'],
  client: ['domain', 'protocol', 'runtime', 'store', 'ready', 'engine', 'worker'],
  otel: ['domain', 'protocol', 'worker', 'client'],
  dashboard: ['domain', 'protocol'],
};

module.exports = {
  forbidden: [
    ...Object.entries(layers).map(([layer, below]) => ({
      name: `${layer}-imports-downward`,
      severity: 'error',
      from: { path: folder(layer), pathNot: test },
      to: { path: '^src/', pathNot: [layer, ...below].map(folder) },
    })),
    {
      name: 'nobody-imports-the-cli',
      severity: 'error',
      from: { pathNot: '^src/cli/' },
      to: { path: '^src/cli/' },
    },
    {
      name: 'nobody-imports-the-dashboard',
      comment: 'it is built for browsers, apart from all else',
      severity: 'error',
      from: { pathNot: '^src/dashboard/' },
      to: { path: '^src/dashboard/' },
    },
    {
      name: 'dashboard-knows-only-types-of-the-wire',
      comment: 'a schema at run time would bring its library into the bundle',
      severity: 'error',
      from: { path: '^src/dashboard/' },
      to: { path: '^src/protocol/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'domain-is-pure',
      comment: 'no packages and no built-in modules; ids are UUIDv7, whose format is not ours',
      severity: 'error',
      from: { path: folder('domain'), pathNot: [test, '^src/domain/ids\\.ts$'] },
      to: { pathNot: '^src/' },
    },
    {
      name: 'domain-ids-need-only-uuidv7',
      severity: 'error',
      from: { path: '^src/domain/ids\\.ts$' },
      to: { pathNot: ['^src/', '^node_modules/uuidv7/'] },
    },
    {
      name: 'pglite-has-one-door',
      severity: 'error',
      from: { path: '^src/', pathNot: [test, '^src/store/embedded/'] },
      to: { path: '^node_modules/@electric-sql/pglite/' },
    },
    {
      name: 'pg-stays-in-the-store',
      severity: 'error',
      from: { path: '^src/', pathNot: [test, folder('store')] },
      to: { path: '^node_modules/pg/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'ioredis-stays-in-ready-redis',
      severity: 'error',
      from: { path: '^src/', pathNot: [test, '^src/ready/redis/'] },
      to: { path: '^node_modules/ioredis/' },
    },
    {
      name: 'opentelemetry-stays-in-otel',
      comment: 'an optional peer: who does not import sluice/otel need not have it',
      severity: 'error',
      from: { path: '^src/', pathNot: [test, folder('otel')] },
      to: { path: '^node_modules/@opentelemetry/' },
    },
    {
      name: 'fastify-stays-in-the-server',
      severity: 'error',
      from: { path: '^src/', pathNot: [test, folder('server'), folder('cli')] },
      to: { path: '^node_modules/(@fastify|fastify)/' },
    },
    {
      name: 'cli-loads-fastify-when-needed',
      severity: 'error',
      from: { path: folder('cli') },
      to: {
        path: '^node_modules/(@fastify|fastify)/',
        dependencyTypesNot: ['dynamic-import', 'type-only'],
      },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'src-stands-alone',
      severity: 'error',
      from: { path: '^src/', pathNot: test },
      to: { path: '^(test|bench|lab|chaos|examples|scripts)/' },
    },
    {
      name: 'ships-without-tests',
      severity: 'error',
      from: { path: '^src/', pathNot: test },
      to: { path: test },
    },
    {
      name: 'declared-dependencies-only',
      severity: 'error',
      // What the dashboard needs is in its bundle.
      from: { path: '^src/', pathNot: [test, '^src/dashboard/'] },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        // A peer is also installed here, for the tests.
        dependencyTypesNot: ['npm-peer'],
      },
    },
    {
      name: 'resolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    combinedDependencies: false,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types'] },
    cache: { folder: 'node_modules/.cache/dependency-cruiser', strategy: 'content' },
  },
};
