/** Stands before the JSON parser: size and media type of a body; an empty body becomes `{}`. */
import type { MiddlewareObj } from "@middy/core";
import type { ApiEvent } from "#shared/http/event.ts";
import { ApiError } from "#shared/http/problem.ts";
import { limits } from "#shared/limits.ts";

const jsonMediaType = /^application\/(?:[a-z0-9.!#$&^_-]+\+)?json\s*(?:;.*)?$/i;

export const bodyGuard = (): MiddlewareObj<ApiEvent> => ({
  before: ({ event }) => {
    const { body, headers } = event.request;
    if (Buffer.byteLength(body) > limits.bodyBytes) {
      throw new ApiError("payload_too_large", `The body may hold at most ${limits.bodyBytes} bytes.`);
    }
    if (body !== "" && !jsonMediaType.test(headers.get("content-type")?.[0] ?? "")) {
      throw new ApiError("unsupported_media_type", "Send the body as application/json.");
    }
    // The parser that follows has one status for a wrong media type and for bad syntax; only the latter is left to it.
    event.headers = { "content-type": "application/json" };
    event.body = body === "" ? "{}" : body;
    event.isBase64Encoded = false;
  },
});
