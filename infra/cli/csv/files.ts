/** The local files of the CSV command. After a crash, a file has either its old content or its complete new content. */
import { createWriteStream } from "node:fs";
import { access, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { Busy, Failed, type Run, retried } from "./service.ts";

/** Lets `write` make a new file, which then replaces `file`. Refuses devices and pipes, because the rename would replace them, too. */
export async function replace(file: string, write: (fresh: string) => Promise<void>): Promise<void> {
  const existing = await stat(file).catch(() => undefined);
  if (existing?.isFile() === false) throw new Failed(`${file} is not a regular file and cannot be replaced`);
  await access(dirname(file));
  const fresh = `${file}.${process.pid}.part`;
  try {
    await write(fresh);
    await rename(fresh, file);
  } finally {
    await rm(fresh, { force: true });
  }
}

/** Saves a file of the bucket, decompressed. `link` returns a new URL before each attempt, because presigned URLs expire. */
export async function download(run: Run, link: () => Promise<string | undefined>, path: string): Promise<void> {
  await retried(run, "the bucket", async () => {
    const url = await link();
    if (url === undefined) throw new Failed("the service no longer has the file");
    run.spinner.start("receiving the file");
    const { status, headers, body } = await fetch(url, { signal: run.signal });
    // Without the length of the answer, `fetch` would accept an incomplete file.
    if (status !== 200 || body === null || !headers.has("content-length")) {
      await body?.cancel();
      if (status === 404) throw new Failed("the bucket no longer has the file");
      throw new Busy(`the bucket answered ${status}`, headers.get("retry-after"));
    }
    await pipeline(body, createWriteStream(path, { flush: true }));
  });
}
