import { describe, expect, it } from 'vitest';

import { isWhole, packImage, unpackImage } from './image-file.js';

describe('a data image', () => {
  const image = packImage({
    folders: ['base', 'base/5', 'pg_notify'],
    files: [
      { path: 'PG_VERSION', content: new TextEncoder().encode('18\n') },
      { path: 'base/5/empty', content: new Uint8Array() },
      { path: 'base/5/1259', content: Uint8Array.from({ length: 10_000 }, (_, n) => n % 251) },
    ],
  });

  it('unpacks to the same folders and files', () => {
    const { folders, files } = unpackImage(image);
    expect(folders).toEqual(['base', 'base/5', 'pg_notify']);
    expect(files.map(({ path, content }) => [path, content.byteLength])).toEqual([
      ['PG_VERSION', 3],
      ['base/5/empty', 0],
      ['base/5/1259', 10_000],
    ]);
    expect(files[2]?.content[9_999]).toBe(9_999 % 251);
  });

  it('shares no memory between two that unpack it', () => {
    unpackImage(image).files[0]?.content.fill(0);
    expect(Buffer.from(unpackImage(image).files[0]?.content ?? []).toString()).toBe('18\n');
  });

  it('is not whole when it was cut or a byte of it changed', () => {
    const changed = Buffer.from(image);
    changed[100] = (changed[100] ?? 0) ^ 1;
    expect([image, image.subarray(0, -1), changed, Buffer.from('')].map(isWhole)).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});
