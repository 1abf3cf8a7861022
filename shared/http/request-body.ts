/** Reads the body of a request: JSON, or a form with one file. */
import { createHash } from "node:crypto";
import type { MiddlewareObj } from "@middy/core";
import httpJsonBodyParser from "@middy/http-json-body-parser";
import * as z from "zod/mini";
import { ApiError } from "#shared/errors.ts";
import type { ApiEvent } from "#shared/http/request.ts";
import { limits } from "#shared/limits.ts";

const jsonMediaType = /^application\/json\s*(?:;.*)?$/i;

/**
 * The parser rejects the keys `__proto__` and `constructor.prototype`, and nesting deeper than its stack. Its own check of the media
 * type is off, since it also accepts types such as `application/problem+json`.
 */
const parser = httpJsonBodyParser<ApiEvent>({ disableContentTypeCheck: true });

/** Checks size and media type, then parses the JSON. An empty body becomes `{}`. */
export const jsonBody = (): MiddlewareObj<ApiEvent, unknown, Error> => ({
  before: async (request) => {
    const { event } = request;
    event.body = readableText(event);
    event.isBase64Encoded = false;
    try {
      await parser.before?.(request);
    } catch (error) {
      throw new ApiError("malformed_json", "The body is not valid JSON.", { cause: error });
    }
    event.payload = event.body;
  },
});

function readableText({ request: { body, headers } }: ApiEvent): string {
  if (Buffer.byteLength(body) > limits.bodyBytes) {
    throw new ApiError("payload_too_large", `The body may hold at most ${limits.bodyBytes} bytes.`);
  }
  if (body !== "" && !jsonMediaType.test(headers.get("content-type")?.[0] ?? "")) {
    throw new ApiError("unsupported_media_type", "Send the body as application/json.");
  }
  return body === "" ? "{}" : body;
}

/** The parsed body of an upload. */
export const UploadedFile = z.object({ file: z.instanceof(Uint8Array) });

export interface Upload {
  /** A larger file fails with payload_too_large. */
  readonly bytes: number;
  /** The advice for a larger file. */
  readonly otherwise: string;
}

/** The name of the form's one field. */
const FIELD = "file";

/** Reads a multipart form with one file and no other part. */
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
    // Each attempt has another boundary, so the file alone identifies a repeated request.
    event.request = {
      ...event.request,
      body: createHash("sha256").update(`${method} ${path}`).update(file).digest("hex"),
    };
  },
});

/** Room for the form around its file, bytes: boundaries, and the headers of its part. */
const FORM_BYTES = 8_192;

/** Parses the form by Node's own parser. Throws validation_failed or payload_too_large. */
async function fileIn(body: Buffer, type: string, { bytes, otherwise }: Upload): Promise<Uint8Array> {
  const response = new Response(Uint8Array.from(body), { headers: { "Content-Type": type } });
  const form = await response.formData().catch(() => {
    throw badForm("the body is not valid multipart/form-data, or it ends too early");
  });
  const [part, more] = [...form];
  if (more !== undefined) throw badForm("the form has more than one part");
  if (part === undefined) throw badForm("the form has no file");
  const [name, file] = part;
  if (name !== FIELD || typeof file === "string")
    throw badForm(`the form's part is not a file, or its name is not ${FIELD}`);
  if (file.size > bytes)
    throw new ApiError("payload_too_large", `The file may hold at most ${bytes} bytes. ${otherwise}`);
  if (file.size === 0) throw badForm("the file is empty");
  if (body.length - file.size > FORM_BYTES) throw badForm("the form holds too much around the file");
  return new Uint8Array(await file.arrayBuffer());
}

function badForm(message: string): ApiError {
  const faults = [{ pointer: `/${FIELD}`, code: "invalid_file", message }];
  return new ApiError("validation_failed", `The body must hold one file in the field ${FIELD}.`, { faults });
}
