import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

/** The same folder for this file in src and in dist. */
const folder = new URL('../../../dist/dashboard/', import.meta.url);
const contentTypes = {
  script: 'text/javascript; charset=utf-8',
  style: 'text/css; charset=utf-8',
} as const;

type Kind = keyof typeof contentTypes;

export interface Asset {
  readonly contentType: string;
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
}

/** A name holds a hash of the content: a browser never asks for it twice. */
export const assetCacheControl = 'public, max-age=31536000, immutable';

let names: Readonly<Record<Kind, string>> | null = null;
const read = new Map<string, Asset>();

export function assetNames(): Readonly<Record<Kind, string>> {
  names ??= readNames();
  return names;
}

function readNames(): Readonly<Record<Kind, string>> {
  try {
    return JSON.parse(readFileSync(new URL('files.json', folder), 'utf8')) as Record<Kind, string>;
  } catch (cause) {
    throw new Error('The files of the dashboard are missing; in a checkout: npm run build', {
      cause,
    });
  }
}

/** Null: there is no such file. Only the two names in the list are ever looked for. */
export function findAsset(name: string): Asset | null {
  const [kind] = Object.entries(assetNames()).find(([, known]) => known === name) ?? [];
  if (kind === undefined) return null;
  const known = read.get(name);
  if (known !== undefined) return known;
  const bytes = readFileSync(fileURLToPath(new URL(name, folder)));
  const asset = { contentType: contentTypes[kind as Kind], bytes, gzipped: gzipSync(bytes) };
  read.set(name, asset);
  return asset;
}

export function takesGzip(acceptEncoding: string | null | undefined): boolean {
  return /\bgzip\b/i.test(acceptEncoding ?? '');
}
