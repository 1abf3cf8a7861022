/** The body of a streamed answer: made in pieces, gzipped where its headers say so, and whole or broken off. */
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip, type Gzip } from "node:zlib";
import type { APIGatewayProxyResult } from "aws-lambda";
import type * as z from "zod/mini";
import { checked } from "#shared/http/chain.ts";
import { errorFields, log } from "#shared/log.ts";

/** Characters of one piece: large enough for the compressor, small beside the memory of a function. */
const PIECE_CHARACTERS = 64 * 1024;

/**
 * Level 6 makes a map of pins a sixth shorter in three times the time of the function. A window of 32 KB takes a tenth more time than
 * one of 16 and makes it no shorter. What comes out in 64 KB rather than 16 at a time takes a fifth less time: each time, the
 * compressor's thread and the function's wait for each other.
 */
const GZIP = { level: 2, windowBits: 14, chunkSize: 64 * 1024 } as const;

export const newGzip = (): Gzip => createGzip(GZIP);

/** Text, or its bytes in UTF-8. */
export type Piece = string | Uint8Array;

export interface StreamedAnswer extends Pick<APIGatewayProxyResult, "statusCode" | "headers"> {
  readonly pieces: Iterable<Piece> | AsyncIterable<Piece>;
}

/** A JSON array in pieces. Each item is checked when its turn comes. */
export async function* jsonArray<Item extends z.ZodMiniType>(
  schema: Item,
  items: Iterable<z.input<Item>> | AsyncIterable<z.input<Item>>,
): AsyncGenerator<string> {
  let piece = "[";
  let separator = "";
  for await (const item of items) {
    piece += separator + JSON.stringify(checked(schema, item));
    separator = ",";
    if (piece.length >= PIECE_CHARACTERS) {
      yield piece;
      piece = "";
    }
  }
  yield `${piece}]`;
}

/** Runs up to the first piece, so that what fails before it can still be answered with a problem. */
export async function begun(pieces: AsyncGenerator<Piece>): Promise<AsyncIterable<Piece>> {
  const first = await pieces.next();
  async function* all(): AsyncGenerator<Piece> {
    if (first.done === true) return;
    yield first.value;
    yield* pieces;
  }
  return all();
}

/** Resolves once the stream has taken everything; else destroys it, so that a part is never taken for the whole, and throws. */
export async function writeAnswer(stream: Writable, { statusCode, headers, pieces }: StreamedAnswer): Promise<void> {
  const body = awslambda.HttpResponseStream.from(stream, { statusCode, headers });
  // A piece may have megabytes: one waits while another is on its way.
  const source = Readable.from(pieces, { highWaterMark: 1 });
  try {
    if (headers?.["Content-Encoding"] === "gzip") await pipeline(source, newGzip(), body);
    else await pipeline(source, body);
  } catch (error) {
    log.error("answer broken off", errorFields(error));
    throw error;
  }
}
