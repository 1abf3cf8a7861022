/** Reads a JSON body: size and media type, then syntax by the parser. An empty body becomes `{}`. */
import type { MiddlewareObj } from "@middy/core";
import jsonBodyParser from "@middy/http-json-body-parser";
import type { ApiEvent } from "#shared/http/event.ts";
import { ApiError } from "#shared/http/problem.ts";
import { limits } from "#shared/limits.ts";

const jsonMediaType = /^application\/json\s*(?:;.*)?$/i;

export function jsonBody(): MiddlewareObj<ApiEvent> {
  const parse = jsonBodyParser<ApiEvent>().before;
  return {
    before: async (request) => {
      const { event } = request;
      const text = readable(event);
      // The parser has one status for a wrong media type and for bad syntax; only the latter is left to it.
      event.headers = { "content-type": "application/json" };
      event.body = text;
      event.isBase64Encoded = false;
      try {
        await parse?.(request);
      } catch (error) {
        if (!isForbiddenKey(error)) throw error;
        // Schemas read the keys they name and no other, so that `__proto__` is here what any unknown field is.
        event.body = JSON.parse(text);
      }
    },
  };
}

function readable({ request: { body, headers } }: ApiEvent): string {
  if (Buffer.byteLength(body) > limits.bodyBytes) {
    throw new ApiError("payload_too_large", `The body may hold at most ${limits.bodyBytes} bytes.`);
  }
  if (body !== "" && !jsonMediaType.test(headers.get("content-type")?.[0] ?? "")) {
    throw new ApiError("unsupported_media_type", "Send the body as application/json.");
  }
  return body === "" ? "{}" : body;
}

const isForbiddenKey = (error: unknown): boolean =>
  error instanceof Error && error.message === "Forbidden key in JSON body";
