/** Makes the handler of an endpoint whose response may exceed 6 MB. It streams the response, with gzip if the client accepts it. */
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { MiddlewareObj } from "@middy/core";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import type * as z from "zod/mini";
import { type ReadContext, readContext } from "#shared/context.ts";
import { beginningBefore } from "#shared/deadline.ts";
import { commonHeaders } from "#shared/http/answer.ts";
import { answering, type Call, checked, requestChain } from "#shared/http/chain.ts";
import type { Contract } from "#shared/http/contract.ts";
import { NotModified, type Validator, validatorOf } from "#shared/http/etag.ts";
import { copied, gzipped, type Piece } from "#shared/http/gzip.ts";
import type { ApiEvent, Request } from "#shared/http/request.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";

type StreamHandler = (event: APIGatewayProxyEvent, stream: Writable, context: Context) => Promise<void>;

interface StreamedCall<Path, Query, Body> extends Call<Path, Query, Body, ReadContext> {
  /** The headers are sent with the first item. */
  readonly header: (name: "Link", value: string) => void;
  /** Checks and sets the response's ETag, for endpoints whose contract sets `revalidated`. */
  readonly validator: Validator;
}

export interface StreamEndpoint {
  readonly contract: Contract;
}

/**
 * Streams one JSON value, which is whole in memory before its first byte is sent. `body` reads the request body. Other endpoints omit it,
 * so that their bundles do not contain it.
 */
export function streamEndpoint<
  Response extends z.ZodMiniType,
  Path extends z.ZodMiniType,
  Query extends z.ZodMiniType,
  Body extends z.ZodMiniType,
>(
  contract: Contract<Path, Query, Body, Response>,
  work: (
    call: StreamedCall<z.output<Path>, z.output<Query>, z.output<Body>>,
  ) => Promise<z.input<Response> | NotModified>,
  body?: MiddlewareObj<ApiEvent>,
): StreamEndpoint {
  return streaming(
    contract,
    async function* (call) {
      const result = await work(call);
      if (result instanceof NotModified) return result;
      yield JSON.stringify(checked(contract.response, result));
      return undefined;
    },
    body,
  );
}

/** Each item is validated and serialized as soon as it arrives. */
export function streamItems<
  Item extends z.ZodMiniType,
  Path extends z.ZodMiniType,
  Query extends z.ZodMiniType,
  Body extends z.ZodMiniType,
>(
  contract: Contract<Path, Query, Body, z.ZodMiniArray<Item>>,
  work: (
    call: StreamedCall<z.output<Path>, z.output<Query>, z.output<Body>>,
  ) => Promise<Iterable<z.input<Item>> | AsyncIterable<z.input<Item>>>,
): StreamEndpoint {
  return streaming(contract, async function* (call) {
    yield* jsonArray(contract.response.def.element, await work(call));
    return undefined;
  });
}

/** No schema checks the JSON, so the tests of `work` must. */
export function streamText<Path extends z.ZodMiniType, Query extends z.ZodMiniType, Body extends z.ZodMiniType>(
  contract: Contract<Path, Query, Body>,
  work: (
    call: StreamedCall<z.output<Path>, z.output<Query>, z.output<Body>>,
  ) => Promise<Iterable<Piece> | AsyncIterable<Piece> | NotModified>,
): StreamEndpoint {
  return streaming(contract, async function* (call) {
    const pieces = await work(call);
    if (pieces instanceof NotModified) return pieces;
    yield* pieces;
    return undefined;
  });
}

/** Streams bytes, or answers 204 for undefined. `gzipLevel` is for bytes for which another level than usual is better. */
export function streamBytes<Path extends z.ZodMiniType, Query extends z.ZodMiniType, Body extends z.ZodMiniType>(
  contract: Contract<Path, Query, Body> & Required<Pick<Contract, "mediaType" | "mayBeEmpty">>,
  work: (
    call: StreamedCall<z.output<Path>, z.output<Query>, z.output<Body>>,
  ) => Promise<Uint8Array | NotModified | undefined>,
  gzipLevel?: number,
): StreamEndpoint {
  const bytesOf = async function* (call: StreamedCall<z.output<Path>, z.output<Query>, z.output<Body>>) {
    const bytes = await work(call);
    if (bytes instanceof NotModified) return bytes;
    if (bytes !== undefined) yield bytes;
    return undefined;
  };
  return streaming(contract, bytesOf, undefined, gzipLevel);
}

export function streamFile<Path extends z.ZodMiniType, Query extends z.ZodMiniType, Body extends z.ZodMiniType>(
  contract: Contract<Path, Query, Body> & Required<Pick<Contract, "file">>,
  work: (call: Call<z.output<Path>, z.output<Query>, z.output<Body>, ReadContext>) => Promise<AsyncIterable<string>>,
): StreamEndpoint {
  return streaming(contract, async function* (call) {
    yield* await work(call);
    return undefined;
  });
}

/** The pieces of a response body. Without pieces, the generator may return NotModified. */
type Pieces = AsyncGenerator<Piece, NotModified | undefined>;

/** An error before the first byte gives a problem body. A later one closes the connection. */
function streaming<Path extends z.ZodMiniType, Query extends z.ZodMiniType, Body extends z.ZodMiniType>(
  contract: Contract<Path, Query, Body>,
  piecesOf: (call: StreamedCall<z.output<Path>, z.output<Query>, z.output<Body>>) => Pieces,
  body?: MiddlewareObj<ApiEvent>,
  gzipLevel?: number,
): StreamEndpoint {
  const setup = { reserveMs: limits.streamBodyMs, services: readContext, ...(body !== undefined && { body }) };
  const chain = requestChain(contract, setup, async (request, call): Promise<StreamedAnswer> => {
    const added: Record<string, string> = {};
    const header = (name: "Link", value: string): void => {
      added[name] = value;
    };
    const validator = validatorOf(request, (etag) => {
      added.ETag = etag;
    });
    const generated = piecesOf({ ...call, header, validator });
    const first = await generated.next();
    if (request.method === "HEAD") await generated.return(undefined);
    const common = { ...commonHeaders(request), ...(contract.revalidated && REVALIDATED) };
    const withoutBody = (statusCode: number, headers: Readonly<Record<string, string>>): StreamedAnswer => ({
      ...{ statusCode, headers: { ...headers, ...varyOnEncoding(headers) } },
      // Lambda sends the headers together with the first piece.
      pieces: [""],
    });
    if (first.value instanceof NotModified) return withoutBody(304, { ...common, ETag: first.value.etag });
    if (first.done === true) return withoutBody(204, { ...contentHeaders(contract), ...added, ...common });
    const headers = { ...contentHeaders(contract), ...added, ...common };
    return {
      statusCode: contract.status,
      headers: { ...headers, ...encodingHeaders(request, headers) },
      pieces: request.method === "HEAD" ? [""] : allOf(first, generated),
      gzipLevel,
    };
  });
  const handle: StreamHandler = async (event, stream, context) => {
    await answering(event, async (received) => {
      const answer = await beginningBefore(
        () => context.getRemainingTimeInMillis() - limits.streamBodyMs,
        () => chain(received, context),
      );
      await writeAnswer(stream, "pieces" in answer ? answer : { ...answer, pieces: [answer.body] });
      return answer;
    });
  };
  return Object.assign(streamified(handle), { contract });
}

function contentHeaders({ file, mediaType }: Contract): Record<string, string> {
  if (file === undefined) return { "Content-Type": mediaType ?? "application/json" };
  return {
    "Content-Type": `${file.mediaType}; charset=utf-8`,
    "Content-Disposition": `attachment; filename="${file.name}"`,
  };
}

/** The AWS SDK also creates a global `awslambda` outside Lambda, but without `streamifyResponse`. */
const streamified = (handle: StreamHandler) =>
  typeof awslambda === "object" && "streamifyResponse" in awslambda ? awslambda.streamifyResponse(handle) : handle;

/** Check before each use. Shared caches may not store it. */
const REVALIDATED = { "Cache-Control": "private, no-cache" } as const;

const varyOnEncoding = ({ Vary }: Readonly<Record<string, string>>): Record<string, string> => ({
  Vary: Vary === undefined ? "Accept-Encoding" : `${Vary}, Accept-Encoding`,
});

/** API Gateway does not compress streamed responses. */
function encodingHeaders(request: Request, headers: Readonly<Record<string, string>>): Record<string, string> {
  const vary = varyOnEncoding(headers);
  return request.method !== "HEAD" && acceptsGzip(request) ? { ...vary, "Content-Encoding": "gzip" } : vary;
}

/** `gzip` or `*` with a weight above zero (RFC 9110). */
function acceptsGzip({ headers }: Request): boolean {
  const codings = (headers.get("accept-encoding") ?? []).join(",").toLowerCase().split(",");
  const weights = new Map(
    codings.map((coding) => {
      const [name = "", ...parameters] = coding.split(";").map((part) => part.trim());
      const q = parameters.find((parameter) => parameter.startsWith("q="));
      return [name, q === undefined ? 1 : Number(q.slice(2))];
    }),
  );
  return (weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0) > 0;
}

/** Compresses well and needs little memory. */
const PIECE_CHARACTERS = 64 * 1024;

export interface StreamedAnswer extends Pick<APIGatewayProxyResult, "statusCode" | "headers"> {
  /** Each piece is valid only until the next one is requested, because pieces may share memory. */
  readonly pieces: Iterable<Piece> | AsyncIterable<Piece>;
  readonly gzipLevel?: number | undefined;
}

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

/** If the first piece fails, the client can still get a problem body, because nothing has been sent yet. */
export async function begun(pieces: AsyncGenerator<Piece>): Promise<AsyncIterable<Piece>> {
  return allOf(await pieces.next(), pieces);
}

async function* allOf(
  first: IteratorResult<Piece, unknown>,
  others: AsyncGenerator<Piece, unknown>,
): AsyncGenerator<Piece> {
  if (first.done === true) return;
  yield first.value;
  yield* others;
}

/**
 * Resolves when the stream has accepted the whole response. An error, or a reader that takes no part for `limits.readerMs`, destroys it, so
 * that no client mistakes an incomplete response for a complete one.
 */
export async function writeAnswer(
  stream: Writable,
  { statusCode, headers, pieces, gzipLevel }: StreamedAnswer,
): Promise<void> {
  const body = awslambda.HttpResponseStream.from(stream, { statusCode, headers });
  const isZipped = headers?.["Content-Encoding"] === "gzip";
  let timer: NodeJS.Timeout | undefined;
  const awaitReader = (): void => {
    timer = setTimeout(() => body.destroy(new Error("the reader takes no bytes")), limits.readerMs);
  };
  /** The time in which a piece is made does not count. */
  async function* watched(pieces: AsyncIterable<Piece>): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) {
      for (const part of partsOf(typeof piece === "string" ? Buffer.from(piece) : piece)) {
        awaitReader();
        yield part;
        clearTimeout(timer);
      }
    }
    awaitReader();
  }
  try {
    // The stream buffers only one piece, because a piece may be several megabytes large.
    const sent = Readable.from(isZipped ? gzipped(pieces, gzipLevel) : copied(pieces), { highWaterMark: 1 });
    await pipeline(watched(sent), body);
  } catch (error) {
    log.error("answer broken off", errorFields(error));
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** A reader of 7 KB a second takes such a part within `limits.readerMs`. */
const PART_BYTES = 64 * 1024;

/** An empty piece gives an empty part, which sends the headers. */
function* partsOf(bytes: Uint8Array): Generator<Uint8Array> {
  yield bytes.subarray(0, PART_BYTES);
  for (let at = PART_BYTES; at < bytes.length; at += PART_BYTES) yield bytes.subarray(at, at + PART_BYTES);
}
