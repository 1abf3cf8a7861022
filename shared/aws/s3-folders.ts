/** Lists, reads, writes and removes files below a prefix of a bucket, for the commands of operators. */
import {
  CopyObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  NoSuchKey,
  PutObjectCommand,
  paginateListObjectsV2,
  type S3Client,
} from "@aws-sdk/client-s3";

export interface FileStore {
  readonly s3: S3Client;
  readonly bucket: string;
}

export interface StoredFile {
  readonly key: string;
  readonly bytes: number;
  readonly etag: string;
}

const FILES_TOGETHER = 1_000;

/** Yields pages of at most 1 000 files below the prefix, sorted by key. Begins after the key `after`. */
export async function* filesAt(
  { s3, bucket }: FileStore,
  prefix: string,
  after?: string,
): AsyncGenerator<readonly StoredFile[]> {
  const asked = { Bucket: bucket, Prefix: prefix, MaxKeys: FILES_TOGETHER, StartAfter: after };
  for await (const { Contents = [] } of paginateListObjectsV2({ client: s3 }, asked)) {
    const files = Contents.map(({ Key = "", Size = 0, ETag = "" }) => ({
      key: Key,
      bytes: Size,
      etag: ETag.replaceAll('"', ""),
    }));
    if (files.length > 0) yield files;
  }
}

export async function countFiles(store: FileStore, prefixes: readonly string[]): Promise<number> {
  let files = 0;
  for (const prefix of prefixes) {
    for await (const page of filesAt(store, prefix)) files += page.length;
  }
  return files;
}

/** Removes the files and returns their number. The bucket's lifecycle rule removes the parts of unfinished uploads after a day. */
export async function removeFiles(store: FileStore, prefixes: readonly string[]): Promise<number> {
  let removed = 0;
  for (const prefix of prefixes) {
    for await (const page of filesAt(store, prefix)) {
      await removePage(store, page);
      removed += page.length;
    }
  }
  return removed;
}

async function removePage({ s3, bucket }: FileStore, files: readonly StoredFile[]): Promise<void> {
  const Delete = { Objects: files.map(({ key }) => ({ Key: key })), Quiet: true };
  const { Errors = [] } = await s3.send(
    // S3 refuses a DeleteObjects request without a checksum.
    new DeleteObjectsCommand({ Bucket: bucket, Delete, ChecksumAlgorithm: "CRC32" }),
  );
  const [first] = Errors;
  if (first !== undefined) throw new Error(`the bucket did not delete ${first.Key}: ${first.Code} ${first.Message}`);
}

export async function readFile({ s3, bucket }: FileStore, key: string): Promise<string | undefined> {
  try {
    return await (await s3.send(new GetObjectCommand({ Bucket: bucket, Key: key }))).Body?.transformToString();
  } catch (error) {
    if (error instanceof NoSuchKey) return undefined;
    throw error;
  }
}

export async function writeFile(
  { s3, bucket }: FileStore,
  key: string,
  body: string | Uint8Array,
  contentType: string,
): Promise<void> {
  await s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body, ContentType: contentType }));
}

/** CopyObject copies at most 5 GB, which is enough because all files of the service are smaller. */
export async function copyFile({ s3, bucket }: FileStore, from: string, to: string): Promise<void> {
  const CopySource = `${bucket}/${from.split("/").map(encodeURIComponent).join("/")}`;
  await s3.send(new CopyObjectCommand({ Bucket: bucket, Key: to, CopySource }));
}
