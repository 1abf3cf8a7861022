/** Signs requests to AWS that go out by `fetch`: a client of the SDK for another service would take ten times its place in a bundle. */
import { createHash, createHmac, type Hash, type Hmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";

export const regionInUse = (): string => process.env.AWS_REGION ?? "us-east-1";

/** Reads the environment. */
export function signerOf(service: "s3" | "sqs"): SignatureV4 {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = process.env;
  const credentials = {
    accessKeyId: AWS_ACCESS_KEY_ID ?? "",
    secretAccessKey: AWS_SECRET_ACCESS_KEY ?? "",
    ...(AWS_SESSION_TOKEN !== undefined && { sessionToken: AWS_SESSION_TOKEN }),
  };
  // S3 takes a path as it stands, where other services escape it once more.
  return new SignatureV4({
    service,
    region: regionInUse(),
    credentials,
    sha256: Sha256,
    uriEscapePath: service !== "s3",
  });
}

type SourceData = string | ArrayBuffer | ArrayBufferView;

/** The signer's idea of a hash, on Node's own. */
class Sha256 {
  readonly #hash: Hash | Hmac;
  constructor(secret?: SourceData) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", bytesOf(secret));
  }
  update(data: Uint8Array | string): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {
    throw new Error("a hash is used once");
  }
}

function bytesOf(data: SourceData): Uint8Array | string {
  if (typeof data === "string") return data;
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}
