/** Makes the handler of an endpoint whose response may exceed 6 MB. It streams the response, with gzip if the client accepts it. */
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { MiddlewareObj } from "@middy/core";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import type * as z from "zod/mini";
import { type ReadContext, readContext } from "#shared/context.ts";
import { beginningBefore } from "#shared/deadline.ts";
import { commonHeaders } from "#shared/http/answer.ts";
import type { Call, Contract, Known } from "#shared/http/contract.ts";
import { answering, checked, requestChain } from "#shared/http/endpoint.ts";
import { NotModified, type Validator, validatorOf } from "#shared/http/etag.ts";
import { copied, gzipped, type Piece } from "#shared/http/gzip.ts";
import type { ApiEvent, Request } from "#shared/http/request.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";

type StreamHandler = (event: APIGatewayProxyEvent, stream: Writable, context: Context) => Promise<void>;

interface StreamedCall<C extends Contract> extends Call<C, ReadContext> {
  /** Sets a header of the response. Call it before the first item, because the headers are sent with this item. */
  readonly header: (name: "Link", value: string) => void;
  /** Checks and sets the response's ETag, for endpoints whose contract sets `revalidated`. */
  readonly validator: Validator;
}

interface StreamEndpoint {
  readonly contract: Contract;
}

type Pieces = Iterable<Piece> | AsyncIterable<Piece>;

interface Options {
  /** Reads the request body. Endpoints without a body omit this middleware, so that their bundles do not contain it. */
  readonly body?: MiddlewareObj<ApiEvent>;
  /** The compression level, if the usual one does not suit the bytes. */
  readonly gzipLevel?: number | undefined;
}

/** Streams one JSON value, which is whole in memory before its first byte is sent. */
export const streamEndpoint = <C extends Contract>(
  contract: Known<C>,
  work: (call: StreamedCall<C>) => Promise<z.input<C["response"]> | NotModified>,
  options: Options = {},
): StreamEndpoint =>
  streaming<C, unknown>(contract, work, (value) => [JSON.stringify(checked(contract.response, value))], options);

type ListContract = Contract & { readonly response: z.ZodMiniArray<z.ZodMiniType> };
type Items<C extends ListContract> = z.input<C["response"]["def"]["element"]>;

/** Streams a list as a JSON array. Each item is validated and serialized as soon as `work` yields it. */
export const streamItems = <C extends ListContract>(
  contract: Known<C>,
  work: (call: StreamedCall<C>) => Promise<Iterable<Items<C>> | AsyncIterable<Items<C>>>,
): StreamEndpoint =>
  streaming<C, Iterable<Items<C>> | AsyncIterable<Items<C>>>(contract, work, (items) =>
    jsonArray(contract.response.def.element, items),
  );

/** Streams the text that `work` returns. No schema checks the text, so the tests of `work` must check it. */
export const streamText = <C extends Contract>(
  contract: Known<C>,
  work: (call: StreamedCall<C>) => Promise<Pieces | NotModified>,
): StreamEndpoint => streaming<C, Pieces>(contract, work, (pieces) => pieces);

/** Streams the bytes that `work` returns. Answers 204 if `work` returns undefined. */
export const streamBytes = <C extends Contract & Required<Pick<Contract, "mediaType" | "mayBeEmpty">>>(
  contract: Known<C>,
  work: (call: StreamedCall<C>) => Promise<Uint8Array | NotModified | undefined>,
  options: Options = {},
): StreamEndpoint =>
  streaming<C, Uint8Array | undefined>(contract, work, (bytes) => (bytes === undefined ? [] : [bytes]), options);

/** Makes the handler. An error before the first byte leads to a problem body. A later error closes the connection. */
function streaming<C extends Contract, Result>(
  contract: C,
  work: (call: StreamedCall<C>) => Promise<Result | NotModified>,
  piecesOf: (result: Result) => Pieces,
  { body, gzipLevel }: Options = {},
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
    const result = await work({ ...call, header, validator });
    // `common` is called when the reads before the first byte have ended, because the header `Server-Timing` must count all of them.
    const common = () => ({ ...commonHeaders(request), ...(contract.revalidated && REVALIDATED) });
    if (result instanceof NotModified) return withoutBody(304, { ...common(), ETag: result.etag });
    const pieces = allOf(piecesOf(result));
    const first = await pieces.next();
    const headers = { ...contentHeaders(contract), ...added, ...common() };
    if (first.done === true) return withoutBody(204, headers);
    const answered = {
      statusCode: contract.status ?? 200,
      headers: { ...headers, ...encodingHeaders(request, headers) },
    };
    if (request.method !== "HEAD") return { ...answered, pieces: continued(first.value, pieces), gzipLevel };
    await pieces.return(undefined);
    return { ...answered, pieces: NO_BODY };
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

/** The empty body has one empty piece, because Lambda sends the headers together with the first piece. */
const NO_BODY = [""];

const withoutBody = (statusCode: number, headers: Readonly<Record<string, string>>): StreamedAnswer => ({
  statusCode,
  headers: { ...headers, ...varyOnEncoding(headers) },
  pieces: NO_BODY,
});

function contentHeaders({ file, mediaType }: Contract): Record<string, string> {
  if (file === undefined) return { "Content-Type": mediaType ?? "application/json" };
  return {
    "Content-Type": `${file.mediaType}; charset=utf-8`,
    "Content-Disposition": `attachment; filename="${file.name}"`,
  };
}

/** Outside Lambda, the AWS SDK creates a global `awslambda` too, but without `streamifyResponse`. */
const streamified = (handle: StreamHandler) =>
  typeof awslambda === "object" && "streamifyResponse" in awslambda ? awslambda.streamifyResponse(handle) : handle;

/** The client must revalidate the response before each use. Shared caches must not store it. */
const REVALIDATED = { "Cache-Control": "private, no-cache" } as const;

const varyOnEncoding = ({ Vary }: Readonly<Record<string, string>>): Record<string, string> => ({
  Vary: Vary === undefined ? "Accept-Encoding" : `${Vary}, Accept-Encoding`,
});

/** Returns the headers of a compressed body. The service compresses it, because API Gateway does not compress streamed responses. */
function encodingHeaders(request: Request, headers: Readonly<Record<string, string>>): Record<string, string> {
  const vary = varyOnEncoding(headers);
  return request.method !== "HEAD" && acceptsGzip(request) ? { ...vary, "Content-Encoding": "gzip" } : vary;
}

/** True if `Accept-Encoding` has `gzip` or `*` with a weight above zero (RFC 9110). */
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

/** The minimum size of a piece of a list, except the last one. A piece of this size compresses well and needs little memory. */
const PIECE_CHARACTERS = 64 * 1024;

interface StreamedAnswer extends Pick<APIGatewayProxyResult, "statusCode" | "headers"> {
  /** Each piece is valid only until the next one is requested, because pieces may share memory. */
  readonly pieces: Pieces;
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

/** Waits for the first piece before the response begins. If making this piece fails, the client can still get a problem body. */
export async function begun(pieces: AsyncGenerator<Piece>): Promise<AsyncIterable<Piece>> {
  const { value, done } = await pieces.next();
  return done === true ? pieces : continued(value, pieces);
}

async function* allOf(pieces: Pieces): AsyncGenerator<Piece, undefined> {
  yield* pieces;
}

async function* continued(first: Piece, others: AsyncIterable<Piece>): AsyncGenerator<Piece> {
  yield first;
  yield* others;
}

/** Destroys the stream after an error, or if the client reads nothing for `limits.readerMs`. Clients thus notice the missing rest. */
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
  /** Towards `limits.readerMs` counts only the time in which the client reads, and not the time in which a piece is made. */
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

/** Maximum bytes of a part of a piece. Even a client that reads only 7 KB a second reads such a part within `limits.readerMs`. */
const PART_BYTES = 64 * 1024;

/** Yields an empty part for an empty piece, because Lambda sends the headers with the first part. */
function* partsOf(bytes: Uint8Array): Generator<Uint8Array> {
  yield bytes.subarray(0, PART_BYTES);
  for (let at = PART_BYTES; at < bytes.length; at += PART_BYTES) yield bytes.subarray(at, at + PART_BYTES);
}
