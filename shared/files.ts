/** Files that a request puts into the bucket. What works on files of any size does it through `objects.ts`. */
import { type Bucket, openBucket } from "#shared/bucket.ts";

export interface Files {
  /** Writes the whole file, over one that stands there. */
  put(key: string, bytes: Uint8Array, contentType: string): Promise<void>;
}

/** Nothing is read or connected before the first file. */
export function openFiles(): Files {
  let bucket: Bucket | undefined;
  return {
    put: async (key, body, contentType) => {
      bucket ??= openBucket();
      const answer = await bucket.send({ method: "PUT", key, body, headers: { "content-type": contentType } });
      await answer.arrayBuffer();
    },
  };
}
