/** Reads a multipart body with one file and nothing else. What is wrong with it is told before anything is written. */
import { createHash } from "node:crypto";
import type { MiddlewareObj } from "@middy/core";
import * as z from "zod/mini";
import { ApiError } from "#shared/errors.ts";
import type { ApiEvent } from "#shared/http/event.ts";

/** What the work gets as its body. */
export const UploadedFile = z.object({ file: z.instanceof(Uint8Array) });

export interface Upload {
  /** More is payload_too_large. */
  readonly bytes: number;
  /** What somebody with a larger file can do. */
  readonly otherwise: string;
}

/** Name of the one field. */
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
    // Each client makes a boundary of its own at each try: what is the same request is told by the file alone.
    event.request = {
      ...event.request,
      body: createHash("sha256").update(`${method} ${path}`).update(file).digest("hex"),
    };
  },
});

/** What a form takes beside its one file: boundaries, and the headers of its part. Bytes. */
const FORM_BYTES = 8_192;

/** Node's own parser of forms. Throws validation_failed, or payload_too_large. */
async function fileIn(body: Buffer, type: string, { bytes, otherwise }: Upload): Promise<Uint8Array> {
  const response = new Response(Uint8Array.from(body), { headers: { "Content-Type": type } });
  const form = await response.formData().catch(() => {
    throw badForm("the body is no multipart/form-data, or it ends too soon");
  });
  const [part, more] = [...form];
  if (more !== undefined) throw badForm("there are more parts than one");
  if (part === undefined) throw badForm("there is no file");
  const [name, file] = part;
  if (name !== FIELD || typeof file === "string")
    throw badForm(`there is a part that is no file, or is not called ${FIELD}`);
  if (file.size > bytes)
    throw new ApiError("payload_too_large", `The file may hold at most ${bytes} bytes. ${otherwise}`);
  if (file.size === 0) throw badForm("the file is empty");
  if (body.length - file.size > FORM_BYTES) throw badForm("there is too much beside the file");
  return new Uint8Array(await file.arrayBuffer());
}

function badForm(message: string): ApiError {
  const faults = [{ pointer: `/${FIELD}`, code: "invalid_file", message }];
  return new ApiError("validation_failed", `The body must hold one file in the field ${FIELD}.`, { faults });
}
