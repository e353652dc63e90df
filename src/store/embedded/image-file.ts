import { gunzipSync, gzipSync } from 'node:zlib';

/** The files of a data folder, packed: gzip, whose checksum tells a damaged one. */
export type DataImage = Uint8Array;

/** Paths are relative, with `/` in between. A folder comes before what is in it. */
export interface UnpackedImage {
  readonly folders: readonly string[];
  readonly files: readonly ImageFile[];
}

export interface ImageFile {
  readonly path: string;
  readonly content: Uint8Array;
}

interface Index {
  readonly folders: readonly string[];
  readonly files: readonly (readonly [path: string, bytes: number])[];
}

const lengthBytes = 4;

/** An index as JSON with its length before it, then the content of every file. */
export function packImage({ folders, files }: UnpackedImage): DataImage {
  const index: Index = {
    folders,
    files: files.map(({ path, content }) => [path, content.byteLength]),
  };
  const json = Buffer.from(JSON.stringify(index));
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(json.byteLength);
  const contents = files.map(({ content }) => content);
  return gzipSync(Buffer.concat([length, json, ...contents]), { level: 9 });
}

/** Every call answers with memory of its own: the caller may write into it. */
export function unpackImage(image: DataImage): UnpackedImage {
  const unzipped = gunzipSync(image);
  const contentsAt = lengthBytes + unzipped.readUInt32LE();
  const index = JSON.parse(unzipped.toString('utf8', lengthBytes, contentsAt)) as Index;
  let at = contentsAt;
  const files = index.files.map(([path, bytes]) => {
    const content = unzipped.subarray(at, at + bytes);
    at += bytes;
    return { path, content };
  });
  return { folders: index.folders, files };
}

export function isWhole(image: DataImage): boolean {
  try {
    unpackImage(image);
    return true;
  } catch {
    return false;
  }
}
