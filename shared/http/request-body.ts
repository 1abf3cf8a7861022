/** Reads the body of a request: JSON, or a form with one file. */
import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import type { MiddlewareObj } from "@middy/core";
import httpJsonBodyParser from "@middy/http-json-body-parser";
import * as z from "zod/mini";
import { ApiError } from "#shared/errors.ts";
import { type ApiEvent, bodyBytes } from "#shared/http/request.ts";
import { readJson } from "#shared/json.ts";
import * as limits from "#shared/limits.ts";

const JSON_MEDIA_TYPE = "application/json";

/** Rejects `__proto__` and `constructor.prototype`. Its check of the media type is off: it would accept `application/problem+json`. */
const parser = httpJsonBodyParser<ApiEvent>({ disableContentTypeCheck: true });

/** Parses a JSON body. An empty body becomes `{}`. The media type `other` is accepted besides `application/json`. */
export const jsonBody = (other?: string): MiddlewareObj<ApiEvent, unknown, Error> => ({
  before: async (request) => {
    const { event } = request;
    const text = readableText(event, other);
    event.body = text;
    event.isBase64Encoded = false;
    try {
      await parser.before?.(request);
      // The text is parsed again, because only `readJson` sees the digits of integers beyond 2^53 - 1.
      event.payload = readJson(text);
    } catch (error) {
      throw new ApiError("malformed_json", reasonOf(error), { cause: error });
    }
  },
});

/** Matches only the beginning or the end of a message of `JSON.parse`, because the message may contain a piece of the body. */
function reasonOf(error: unknown): string {
  if (/^Forbidden key/.test(messageIn(error))) {
    return "The body must not have the key `__proto__`, or a key `constructor` whose value has the key `prototype`.";
  }
  const message = messageIn(error instanceof Error ? (error.cause ?? error) : undefined);
  if (/^Maximum call stack/.test(message)) return "The body is nested too deeply.";
  const [, position] = / at position (\d+)(?: \(line \d+ column \d+\))?$/.exec(message) ?? [];
  if (position === undefined) return "The body is not valid JSON.";
  return `The body is not valid JSON: the fault is at character ${Number(position) + 1}.`;
}

const messageIn = (error: unknown): string =>
  typeof error === "object" && error !== null && "message" in error ? String(error.message) : "";

function readableText({ request, ...event }: ApiEvent, other: string | undefined): string {
  const { body, headers } = request;
  const bytes = bodyBytes(event);
  if (bytes.length > limits.bodyBytes) {
    throw new ApiError("payload_too_large", `The body may hold at most ${limits.bodyBytes} bytes.`);
  }
  const mediaType = headers.get("content-type")?.[0]?.split(";")[0]?.trim().toLowerCase();
  if (body !== "" && mediaType !== JSON_MEDIA_TYPE && (mediaType === undefined || mediaType !== other)) {
    throw new ApiError("unsupported_media_type", `Send the body as ${JSON_MEDIA_TYPE}.`);
  }
  if (!isUtf8(bytes)) throw new ApiError("malformed_json", "The body is not UTF-8.");
  // Map programs write a byte order mark at the beginning of GeoJSON.
  const text = other === undefined ? body : body.replace(/^\uFEFF/, "");
  return text === "" ? "{}" : text;
}

export const UploadedFile = z.object({ file: z.instanceof(Uint8Array) });

export interface Upload {
  readonly bytes: number;
  /** Says what the client should do with a larger file. */
  readonly otherwise: string;
}

const FIELD = "file";

export const uploadedFile = (upload: Upload): MiddlewareObj<ApiEvent> => ({
  before: async ({ event }) => {
    const { headers, method, path } = event.request;
    const type = String(headers.get("content-type")?.[0]);
    if (!/^multipart\/form-data\s*(?:;|$)/i.test(type)) {
      throw new ApiError("unsupported_media_type", "Send the file as multipart/form-data.");
    }
    const file = await fileIn(bodyBytes(event), type, upload);
    event.payload = { file };
    // A repeated request must have the same `body`. Form boundaries differ each time, so a hash of the file replaces the body.
    event.request = {
      ...event.request,
      body: createHash("sha256").update(`${method} ${path}`).update(file).digest("hex"),
    };
  },
});

const FORM_BYTES = 8_192;

/** Returns the file of a form. Throws `validation_failed` or `payload_too_large`. */
async function fileIn(body: Buffer, type: string, { bytes, otherwise }: Upload): Promise<Uint8Array> {
  const response = new Response(Uint8Array.from(body), { headers: { "Content-Type": type } });
  const form = await response.formData().catch(() => {
    throw badForm("must be valid multipart/form-data with a final boundary");
  });
  // All other fields of the form are ignored, because a browser sends every field.
  const file = form.getAll(FIELD).find((part) => typeof part !== "string");
  if (file === undefined) throw badForm(`must be a file, in a field called ${FIELD}`);
  if (file.size > bytes)
    throw new ApiError("payload_too_large", `The file may hold at most ${bytes} bytes. ${otherwise}`);
  if (file.size === 0) throw badForm("must not be empty");
  const parts = [...form.values()].map((part) => (typeof part === "string" ? Buffer.byteLength(part) : part.size));
  if (body.length - parts.reduce((sum, size) => sum + size, 0) > FORM_BYTES)
    throw badForm("must not have so large part headers and boundaries");
  return new Uint8Array(await file.arrayBuffer());
}

function badForm(message: string): ApiError {
  const faults = [{ pointer: `/${FIELD}`, code: "invalid_file", message }];
  return new ApiError("validation_failed", `The body must hold one file in the field ${FIELD}.`, { faults });
}
