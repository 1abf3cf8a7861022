/**
 * Simulates KMS, with keys that are stored in the data directory. As on AWS, the encryption context must be the same for decryption as for
 * encryption, and the caller's policy must allow the operation.
 */

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import * as z from "zod/mini";
import { messageOf } from "../../command/error.ts";
import { type LocalServer, serveOnLoopback } from "../servers/listener.ts";

export interface KeyUse {
  /** The access key of the caller. For a function, it is the function's name. For a command of an operator, it is any other string. */
  readonly caller: string;
  readonly action: "kms:GenerateDataKey" | "kms:Decrypt";
  readonly keyArn: string;
  readonly context: Readonly<Record<string, string>>;
}

export interface KeyServer extends LocalServer {
  /** The names of the operations that succeeded since the start. Tests count them. */
  readonly calls: string[];
  /** Creates the keys that do not exist yet. After this call, the server refuses each operation for which `refusal` returns a reason. */
  serve(keyArns: readonly string[], refusal?: (use: KeyUse) => string | undefined): void;
}

const StoredKeys = z.record(z.string(), z.string());
const Context = z._default(z.record(z.string(), z.string()), {});
const Input = z.object({
  KeyId: z.optional(z.string()),
  EncryptionContext: Context,
  KeySpec: z.optional(z.enum(["AES_256", "AES_128"])),
  NumberOfBytes: z.optional(z.int()),
  CiphertextBlob: z.optional(z.string()),
});
type Input = z.infer<typeof Input>;

class Refused extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** @param file the file that stores the keys across restarts. If it is undefined, the keys are in memory only. */
export async function startKms(file: string | undefined): Promise<KeyServer> {
  const keys: Record<string, string> =
    file !== undefined && existsSync(file) ? z.parse(StoredKeys, JSON.parse(readFileSync(file, "utf8"))) : {};
  const calls: string[] = [];
  let refusal: (use: KeyUse) => string | undefined = () => undefined;

  function answer(operation: string, input: Input, caller: string): object {
    if (operation === "GenerateDataKey") return generate(input, caller);
    if (operation === "Decrypt") return decrypt(input, caller);
    throw new Refused("UnsupportedOperationException", `${operation} is not supported by the local runtime`);
  }

  function keyAt(keyArn: string, action: KeyUse["action"], caller: string, context: KeyUse["context"]): Buffer {
    const reason = refusal({ caller, action, keyArn, context });
    if (reason !== undefined) throw new Refused("AccessDeniedException", reason);
    const key = keys[keyArn];
    if (key === undefined) throw new Refused("NotFoundException", `no key ${keyArn} exists`);
    return Buffer.from(key, "base64");
  }

  function generate({ KeyId = "", EncryptionContext, KeySpec, NumberOfBytes }: Input, caller: string): object {
    const key = keyAt(KeyId, "kms:GenerateDataKey", caller, EncryptionContext);
    const plain = randomBytes(NumberOfBytes ?? (KeySpec === "AES_128" ? 16 : 32));
    const blob = wrapped(key, KeyId, EncryptionContext, plain);
    return { KeyId, Plaintext: plain.toString("base64"), CiphertextBlob: blob.toString("base64") };
  }

  function decrypt({ KeyId, EncryptionContext, CiphertextBlob = "" }: Input, caller: string): object {
    const blob = Buffer.from(CiphertextBlob, "base64");
    const keyArn = blob.subarray(1, 1 + (blob[0] ?? 0)).toString("utf8");
    const key = keyAt(KeyId ?? keyArn, "kms:Decrypt", caller, EncryptionContext);
    if (KeyId !== undefined && KeyId !== keyArn)
      throw new Refused("IncorrectKeyException", "the data was encrypted with another key");
    const plain = unwrapped(key, keyArn, EncryptionContext, blob);
    return { KeyId: keyArn, Plaintext: plain.toString("base64"), EncryptionAlgorithm: "SYMMETRIC_DEFAULT" };
  }

  async function handle(request: IncomingMessage): Promise<{ status: number; body: object }> {
    const operation = String(request.headers["x-amz-target"]).split(".")[1] ?? "";
    const caller = /Credential=([^/]+)\//.exec(request.headers.authorization ?? "")?.[1] ?? "";
    try {
      const input = z.parse(Input, JSON.parse(await text(request)));
      const body = answer(operation, input, caller);
      calls.push(operation);
      return { status: 200, body };
    } catch (error) {
      const code = error instanceof Refused ? error.code : "ValidationException";
      const message = messageOf(error);
      return { status: 400, body: { __type: code, message } };
    }
  }

  const server = await serveOnLoopback(async (request, response) => {
    const { status, body } = await handle(request);
    response.writeHead(status, { "Content-Type": "application/x-amz-json-1.1" }).end(JSON.stringify(body));
  });
  return {
    ...server,
    calls,
    serve(keyArns, refuse = () => undefined) {
      refusal = refuse;
      for (const arn of keyArns) keys[arn] ??= randomBytes(32).toString("base64");
      if (file !== undefined) writeFileSync(file, JSON.stringify(keys), { mode: 0o600 });
    },
  };
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const contextBytes = (context: KeyUse["context"]): Buffer =>
  Buffer.from(JSON.stringify(Object.entries(context).toSorted(([a], [b]) => (a < b ? -1 : 1))));

function wrapped(key: Buffer, keyArn: string, context: KeyUse["context"], plain: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(contextBytes(context));
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([Buffer.from([keyArn.length]), Buffer.from(keyArn), nonce, cipher.getAuthTag(), sealed]);
}

function unwrapped(key: Buffer, keyArn: string, context: KeyUse["context"], blob: Buffer): Buffer {
  const rest = blob.subarray(1 + keyArn.length);
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, rest.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
      .setAAD(contextBytes(context))
      .setAuthTag(rest.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([decipher.update(rest.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
  } catch {
    throw new Refused("InvalidCiphertextException", "");
  }
}
