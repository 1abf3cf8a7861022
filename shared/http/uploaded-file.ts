/** Reads a multipart body that holds one file. Refuses any other body before the work begins. */
import { createHash } from "node:crypto";
import type { MiddlewareObj } from "@middy/core";
import * as z from "zod/mini";
import { ApiError } from "#shared/errors.ts";
import type { ApiEvent } from "#shared/http/request.ts";

/** The body that the handler gets. */
export const UploadedFile = z.object({ file: z.instanceof(Uint8Array) });

export interface Upload {
  /** A larger file is payload_too_large. */
  readonly bytes: number;
  /** Advises what to do with a larger file. */
  readonly otherwise: string;
}

/** The name of the only field. */
const FIELD = "file";

export const uploadedFile = (upload: Upload): MiddlewareObj<ApiEvent> => ({
  before: async ({ event }) => {
    const { headers, method, path } = event.request;
    const type = headers.get("content-type")?.[0] ?? "";
    if (!/^multipart\/form-data\s*(?:;|$)/i.test(type)) {
      throw new ApiError("unsupported_media_type", "Send the file as multipart/form-data.");
    }
    const body = Buffer.from(event.body ?? "", event.isBase64Encoded ? "base64" : "utf8");
    const file = await fileIn(body, type, upload);
    event.payload = { file };
    // Idempotency compares the file alone: a client chooses a new form boundary for each try.
    event.request = {
      ...event.request,
      body: createHash("sha256").update(`${method} ${path}`).update(file).digest("hex"),
    };
  },
});

/** The largest size of boundaries and part headers, in bytes. */
const FORM_BYTES = 8_192;

/** Uses Node's form parser. Throws validation_failed or payload_too_large. */
async function fileIn(body: Buffer, type: string, { bytes, otherwise }: Upload): Promise<Uint8Array> {
  const response = new Response(Uint8Array.from(body), { headers: { "Content-Type": type } });
  const form = await response.formData().catch(() => {
    throw badForm("must be valid multipart/form-data with a final boundary");
  });
  const [part, more] = [...form];
  if (more !== undefined) throw badForm("must be the only part of the form");
  if (part === undefined) throw badForm("must be in the form");
  const [name, file] = part;
  if (name !== FIELD || typeof file === "string") throw badForm(`must be a file, in a field called ${FIELD}`);
  if (file.size > bytes)
    throw new ApiError("payload_too_large", `The file may hold at most ${bytes} bytes. ${otherwise}`);
  if (file.size === 0) throw badForm("must not be empty");
  if (body.length - file.size > FORM_BYTES) throw badForm("must not have so large part headers and boundaries");
  return new Uint8Array(await file.arrayBuffer());
}

function badForm(message: string): ApiError {
  const faults = [{ pointer: `/${FIELD}`, code: "invalid_file", message }];
  return new ApiError("validation_failed", `The body must hold one file in the field ${FIELD}.`, { faults });
}
