// How much of a browser's or an edge runtime's bundle is sluice/client, minified and gzipped. Fails above the limit, and
// when it needs a module of Node. Needs dist.
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { analyzeMetafile, build } from 'esbuild';

const maxBytes = 15_000;

const { outputFiles, metafile } = await build({
  absWorkingDir: join(import.meta.dirname, '..'),
  stdin: {
    contents: "export * from 'sluice/client';",
    resolveDir: join(import.meta.dirname, '..'),
  },
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'browser',
  metafile: true,
  write: false,
});
const bytes = gzipSync(outputFiles[0].contents, { level: 9 }).length;

if (bytes > maxBytes) console.log(await analyzeMetafile(metafile));
console.log(
  `sluice/client: ${bytes.toLocaleString('en')} bytes gzipped, at most ${maxBytes.toLocaleString('en')}`,
);
process.exitCode = bytes > maxBytes ? 1 : 0;
