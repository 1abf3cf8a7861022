/** What Lambda carries of a buffered answer. Too large a one is found before its effect is committed, never after. */

import type { ApiContext } from "#shared/context.ts";
import { ApiError } from "#shared/errors.ts";
import { limits } from "#shared/limits.ts";

/** Headers, status and the names of the envelope. */
const ENVELOPE_BYTES = 16 * 1024;
/** A character of JSON text takes at most so many bytes as part of the envelope: three in UTF-8, or two where it is escaped again. */
const CHARACTER_BYTES = 3;

/** Bytes of a body within the JSON that the function answers with. */
export const carriedBytes = (body: string): number => Buffer.byteLength(JSON.stringify(body));

/** Throws `internal` for a body that Lambda would refuse: API Gateway would answer 502 in its place. */
export function assertCarried(body: string): void {
  const room = limits.bufferedAnswerBytes - ENVELOPE_BYTES;
  if (body.length * CHARACTER_BYTES <= room) return;
  const bytes = carriedBytes(body);
  if (bytes <= room) return;
  throw new ApiError("internal", "the answer is too large", {
    cause: new Error(`an answer of ${bytes} bytes, where Lambda carries ${room}: bound or stream it`),
  });
}

/** Commits nothing whose answer could not be given. */
export const committingCarried = (context: ApiContext): ApiContext => ({
  ...context,
  commit: async (writes, answer) => {
    assertCarried(JSON.stringify(answer) ?? "");
    await context.commit(writes, answer);
  },
});
