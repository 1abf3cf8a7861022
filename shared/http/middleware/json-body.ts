/** Reads a JSON body: size and media type, then syntax. An empty body becomes `{}`. */
import type { MiddlewareObj } from "@middy/core";
import type { ApiEvent } from "#shared/http/event.ts";
import { ApiError } from "#shared/http/problem.ts";
import { limits } from "#shared/limits.ts";

const jsonMediaType = /^application\/json\s*(?:;.*)?$/i;

export const jsonBody = (): MiddlewareObj<ApiEvent> => ({
  before: ({ event }) => {
    event.payload = parsed(readable(event));
  },
});

function readable({ request: { body, headers } }: ApiEvent): string {
  if (Buffer.byteLength(body) > limits.bodyBytes) {
    throw new ApiError("payload_too_large", `The body may hold at most ${limits.bodyBytes} bytes.`);
  }
  if (body !== "" && !jsonMediaType.test(headers.get("content-type")?.[0] ?? "")) {
    throw new ApiError("unsupported_media_type", "Send the body as application/json.");
  }
  return body === "" ? "{}" : body;
}

/**
 * Without a reviver, which takes stack for every level: the body limit alone bounds the depth. Schemas read the keys that
 * they name and no other, so that `__proto__` is here what any unknown field is.
 */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ApiError("malformed_json", "The body is not valid JSON.", { cause: error });
  }
}
