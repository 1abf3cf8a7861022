/** Presigned links to files in the bucket: the holder of a link reads or writes one file until the link expires, without a token. */
import { GetObjectCommand, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { s3Client } from "#shared/aws/s3.ts";
import { iso } from "#shared/clock.ts";
import { setting } from "#shared/config.ts";

export interface Link {
  readonly url: string;
  readonly expiresAt: string;
}

/** An upload must send exactly these headers. S3 refuses another length, other bytes and a second file. */
export interface UploadHeaders {
  readonly "content-type": string;
  /** `*`: the file must not exist yet. */
  readonly "if-none-match": string;
  /** Bytes. */
  readonly "content-length"?: string | undefined;
  /** Base64. */
  readonly "x-amz-checksum-sha256"?: string | undefined;
}

/** Makes links. It reads and writes no file. */
export interface Links {
  download(key: string, seconds: number, nowMs: number): Promise<Link>;
  upload(key: string, headers: UploadHeaders, seconds: number, nowMs: number): Promise<Link>;
}

/** Reads no setting and opens no connection before the first link. */
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
      // By default the signer does not sign the media type, and it moves `x-amz-` headers into the query, so an upload need not send them.
      const names = new Set(Object.keys(headers));
      const url = await getSignedUrl(s3(), command, { expiresIn, signableHeaders: names, unhoistableHeaders: names });
      return expiring(url, expiresIn, nowMs);
    },
  };
}
