/** Reads a JSON body: size and media type, then syntax by middy's parser. An empty body becomes `{}`. */
import type { MiddlewareObj } from "@middy/core";
import httpJsonBodyParser from "@middy/http-json-body-parser";
import { ApiError } from "#shared/errors.ts";
import type { ApiEvent } from "#shared/http/event.ts";
import { limits } from "#shared/limits.ts";

const jsonMediaType = /^application\/json\s*(?:;.*)?$/i;

/**
 * The parser refuses the keys `__proto__` and `constructor.prototype`, and nesting deeper than its stack. Its own check of the media type
 * is off: it also takes types such as `application/problem+json`.
 */
const parser = httpJsonBodyParser<ApiEvent>({ disableContentTypeCheck: true });

export const jsonBody = (): MiddlewareObj<ApiEvent, unknown, Error> => ({
  before: async (request) => {
    const { event } = request;
    event.body = readable(event);
    event.isBase64Encoded = false;
    try {
      await parser.before?.(request);
    } catch (error) {
      throw new ApiError("malformed_json", "The body is not valid JSON.", { cause: error });
    }
    event.payload = event.body;
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
