/** Simulates the S3 bucket with a folder. File contents are streamed, so that a file may be larger than the memory. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { appendFile, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { FileInfo, Objects } from "#shared/aws/s3.ts";
import { FileGone } from "#shared/errors.ts";

export function folderBucket(folder: string): Objects {
  const at = async (key: string): Promise<string> => {
    const place = join(folder, key);
    await mkdir(dirname(place), { recursive: true });
    return place;
  };
  const info = async (key: string): Promise<FileInfo | undefined> => {
    const found = await stat(await at(key)).catch(() => undefined);
    return found === undefined ? undefined : { bytes: found.size, etag: `"${found.size}-${found.mtimeMs}"` };
  };
  const partAt = (key: string, number: number): Promise<string> => at(`${key}.parts/${number}`);
  return {
    info,
    put: async (key, bytes) => writeFile(await at(key), bytes),
    get: async (key) => {
      if ((await info(key)) === undefined) throw new FileGone("there is no such file");
      return readFile(await at(key));
    },
    read: async function* (key, etag) {
      if ((await info(key))?.etag !== etag) throw new FileGone("another file");
      for await (const chunk of createReadStream(await at(key))) yield chunk;
    },
    remove: async (key) => rm(await at(key), { force: true }),
    beginParts: async (key) => key,
    putPart: async (key, _, number, bytes) => {
      await writeFile(await partAt(key, number), bytes);
      return createHash("md5").update(bytes).digest("hex");
    },
    completeParts: async (key, _, tags) => {
      const whole = await partAt(key, 0);
      for (let number = 1; number <= tags.length; number++) {
        await appendFile(whole, await readFile(await partAt(key, number)));
      }
      await rename(whole, await at(key));
      await rm(dirname(whole), { recursive: true });
    },
    abortParts: async (key) => rm(dirname(await partAt(key, 0)), { recursive: true, force: true }),
  };
}
