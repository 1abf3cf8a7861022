/** Presigned URLs: a client can read or write one file without a token, until the URL expires. */
import { GetObjectCommand, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { s3Client } from "#shared/aws/s3.ts";
import { iso } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";

export interface Link {
  readonly url: string;
  readonly expiresAt: string;
}

/** The headers that an upload must have. S3 refuses an upload with other headers or bytes, or to an existing file. */
export interface UploadHeaders {
  readonly "content-type": string;
  /** Must be `*`, so that S3 refuses to replace a file. */
  readonly "if-none-match": string;
  readonly "content-length"?: string | undefined;
  readonly "x-amz-checksum-sha256"?: string | undefined;
}

export interface Links {
  download(key: string, seconds: number, nowMs: number): Promise<Link>;
  upload(key: string, headers: UploadHeaders, seconds: number, nowMs: number): Promise<Link>;
}

/** Returns functions that make presigned URLs. The environment variables are read when the first URL is made. */
export function openLinks(): Links {
  let client: S3Client | undefined;
  const s3 = (): S3Client => {
    client ??= s3Client();
    return client;
  };
  const expiring = (url: string, seconds: number, nowMs: number): Link => ({
    url,
    expiresAt: iso(nowMs + seconds * 1_000),
  });
  return {
    download: async (Key, expiresIn, nowMs) => {
      const command = new GetObjectCommand({ Bucket: setting("BUCKET_NAME"), Key });
      return expiring(await getSignedUrl(s3(), command, { expiresIn }), expiresIn, nowMs);
    },
    upload: async (Key, headers, expiresIn, nowMs) => {
      const { "content-length": length, "x-amz-checksum-sha256": sha256 } = headers;
      const command = new PutObjectCommand({
        Bucket: setting("BUCKET_NAME"),
        Key,
        ContentType: headers["content-type"],
        IfNoneMatch: headers["if-none-match"],
        ...(length !== undefined && { ContentLength: Number(length) }),
        ...(sha256 !== undefined && { ChecksumSHA256: sha256 }),
      });
      // All headers are signed, so that the client cannot change them. By default, the signer would omit the media type and move `x-amz-`
      // headers into the query.
      const names = new Set(Object.keys(headers));
      const url = await getSignedUrl(s3(), command, { expiresIn, signableHeaders: names, unhoistableHeaders: names });
      return expiring(url, expiresIn, nowMs);
    },
  };
}
