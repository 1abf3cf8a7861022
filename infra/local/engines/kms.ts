/**
 * Simulates KMS, with keys that are stored in the data directory. As on AWS, the encryption context must be the same for decryption as for
 * encryption, and the caller's policy must allow the operation.
 */

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import * as z from "zod/mini";
import { messageOf } from "../../cli/command/error.ts";
import { type LocalServer, serveOnLoopback } from "../servers/listener.ts";
import { readStored } from "../servers/stored.ts";
import { callerOf, operationOf } from "./caller.ts";

export interface KeyUse {
  /** The access key of the caller. For a function, it is the function's name. For a command of an operator, it is any other string. */
  readonly caller: string;
  readonly action: "kms:GenerateDataKey" | "kms:Decrypt";
  readonly keyArn: string;
  readonly context: Readonly<Record<string, string>>;
}

export interface KeyServer extends LocalServer {
  /** The operations that succeeded since the start. Tests count them. */
  readonly calls: string[];
  /** Creates the keys that do not exist yet. After this call, the server refuses each operation for which `refusal` returns a reason. */
  serve(keyArns: readonly string[], refusal?: (use: KeyUse) => string | undefined): void;
}

const StoredKeys = z.record(z.string(), z.string());
const Context = z._default(z.record(z.string(), z.string()), {});
const NewKey = z.strictObject({ KeyId: z.string(), KeySpec: z.literal("AES_256"), EncryptionContext: Context });
const Encrypted = z.strictObject({ KeyId: z.string(), CiphertextBlob: z.string(), EncryptionContext: Context });

class Refused extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** @param file the file that stores the keys across restarts. If it is undefined, the keys are in memory only. */
export async function startKms(file: string | undefined): Promise<KeyServer> {
  const keys = readStored(file, StoredKeys) ?? {};
  const calls: string[] = [];
  let refusal: (use: KeyUse) => string | undefined = () => undefined;

  function answer(operation: string, input: unknown, caller: string): object {
    if (operation === "GenerateDataKey") return generate(z.parse(NewKey, input), caller);
    if (operation === "Decrypt") return decrypt(z.parse(Encrypted, input), caller);
    throw new Refused("UnsupportedOperationException", `${operation} is not supported by the local runtime`);
  }

  function keyAt(keyArn: string, action: KeyUse["action"], caller: string, context: KeyUse["context"]): Buffer {
    const reason = refusal({ caller, action, keyArn, context });
    if (reason !== undefined) throw new Refused("AccessDeniedException", reason);
    const key = keys[keyArn];
    if (key === undefined) throw new Refused("NotFoundException", `no key ${keyArn} exists`);
    return Buffer.from(key, "base64");
  }

  function generate({ KeyId, EncryptionContext }: z.infer<typeof NewKey>, caller: string): object {
    const key = keyAt(KeyId, "kms:GenerateDataKey", caller, EncryptionContext);
    const plain = randomBytes(32);
    const blob = wrapped(key, KeyId, EncryptionContext, plain);
    return { KeyId, Plaintext: plain.toString("base64"), CiphertextBlob: blob.toString("base64") };
  }

  function decrypt({ KeyId, EncryptionContext, CiphertextBlob }: z.infer<typeof Encrypted>, caller: string): object {
    const key = keyAt(KeyId, "kms:Decrypt", caller, EncryptionContext);
    const plain = unwrapped(key, KeyId, EncryptionContext, Buffer.from(CiphertextBlob, "base64"));
    return { KeyId, Plaintext: plain.toString("base64"), EncryptionAlgorithm: "SYMMETRIC_DEFAULT" };
  }

  async function handle(request: IncomingMessage): Promise<{ status: number; body: object }> {
    const operation = String(operationOf(request.headers));
    const caller = String(callerOf(request.headers));
    try {
      const body = answer(operation, JSON.parse(await text(request)), caller);
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
