/**
 * Makes the Lambda handler of an endpoint whose answer may exceed 6 MB. The handler streams the answer, and compresses it if the client
 * accepts gzip.
 */
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import type * as z from "zod/mini";
import { type ReadContext, readContext } from "#shared/context.ts";
import { commonHeaders } from "#shared/http/answer.ts";
import { answering, type Call, checked, requestChain } from "#shared/http/chain.ts";
import type { Contract } from "#shared/http/contract.ts";
import { NotModified, type Validator, validatorOf } from "#shared/http/etag.ts";
import { copied, gzipped, type Piece } from "#shared/http/gzip.ts";
import type { Request } from "#shared/http/request.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";

type StreamHandler = (event: APIGatewayProxyEvent, stream: Writable, context: Context) => Promise<void>;

interface StreamedCall<Path, Query, Body> extends Call<Path, Query, Body, ReadContext> {
  /** Sets a response header. Call it before the first item, because the headers are sent before the items. */
  readonly header: (name: "Link", value: string) => void;
  /** Sets the answer's ETag, for endpoints whose contract is `revalidated`. */
  readonly validator: Validator;
}

export interface StreamEndpoint {
  readonly contract: Contract;
}

/** Streams one JSON value. The whole value is in memory before its first byte is sent. */
export function streamEndpoint<
  Response extends z.ZodMiniType,
  Path extends z.ZodMiniType,
  Query extends z.ZodMiniType,
  Body extends z.ZodMiniType,
>(
  contract: Contract<Path, Query, Body, Response>,
  work: (call: StreamedCall<z.output<Path>, z.output<Query>, z.output<Body>>) => Promise<z.input<Response>>,
): StreamEndpoint {
  return streaming(contract, async function* (call) {
    yield JSON.stringify(checked(contract.response, await work(call)));
  });
}

/** Streams a JSON array of any length. Each item is validated and written as soon as it arrives. */
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
  });
}

/** Streams JSON text that `work` writes itself. The text is not checked by a schema, so the tests of `work` must check it. */
export function streamText<Path extends z.ZodMiniType, Query extends z.ZodMiniType, Body extends z.ZodMiniType>(
  contract: Contract<Path, Query, Body>,
  work: (call: StreamedCall<z.output<Path>, z.output<Query>, z.output<Body>>) => Promise<Iterable<Piece>>,
): StreamEndpoint {
  return streaming(contract, async function* (call) {
    yield* await work(call);
  });
}

export function streamFile<Path extends z.ZodMiniType, Query extends z.ZodMiniType, Body extends z.ZodMiniType>(
  contract: Contract<Path, Query, Body> & Required<Pick<Contract, "file">>,
  work: (call: Call<z.output<Path>, z.output<Query>, z.output<Body>, ReadContext>) => Promise<AsyncIterable<string>>,
): StreamEndpoint {
  return streaming(contract, async function* (call) {
    yield* await work(call);
  });
}

/** Makes the streaming handler. An error before the first byte leads to a problem body. A later error breaks the connection. */
function streaming<Path extends z.ZodMiniType, Query extends z.ZodMiniType, Body extends z.ZodMiniType>(
  contract: Contract<Path, Query, Body>,
  piecesOf: (call: StreamedCall<z.output<Path>, z.output<Query>, z.output<Body>>) => AsyncGenerator<Piece>,
): StreamEndpoint {
  const setup = { reserveMs: limits.streamBodyMs, services: readContext };
  const chain = requestChain(contract, setup, async (request, call): Promise<StreamedAnswer> => {
    const added: Record<string, string> = {};
    const header = (name: "Link", value: string): void => {
      added[name] = value;
    };
    const validator = validatorOf(request, (etag) => {
      added.ETag = etag;
    });
    const generated = piecesOf({ ...call, header, validator });
    const pieces = await begun(generated).catch((error: unknown) => {
      if (error instanceof NotModified) return error;
      throw error;
    });
    if (request.method === "HEAD") await generated.return(undefined);
    const common = { ...commonHeaders(request), ...(contract.revalidated && REVALIDATED) };
    if (pieces instanceof NotModified) {
      const headers = { ...common, ETag: pieces.etag };
      return { statusCode: 304, headers: { ...headers, ...varyOnEncoding(headers) }, pieces: [""] };
    }
    const headers = { ...contentHeaders(contract), ...added, ...common };
    return {
      statusCode: contract.status,
      headers: { ...headers, ...encodingHeaders(request, headers) },
      // The answer to HEAD has no body. An empty part is written, because Lambda sends the headers only with the first part.
      pieces: request.method === "HEAD" ? [""] : pieces,
    };
  });
  const handle: StreamHandler = async (event, stream, context) => {
    await answering(event, async (received) => {
      const answer = await chain(received, context);
      await writeAnswer(stream, "pieces" in answer ? answer : { ...answer, pieces: [answer.body] });
      return answer;
    });
  };
  return Object.assign(streamified(handle), { contract });
}

function contentHeaders({ file }: Contract): Record<string, string> {
  if (file === undefined) return { "Content-Type": "application/json" };
  return {
    "Content-Type": `${file.mediaType}; charset=utf-8`,
    "Content-Disposition": `attachment; filename="${file.name}"`,
  };
}

/**
 * Makes a streaming handler inside Lambda, and a plain handler elsewhere. The global `awslambda` alone does not prove that the code runs
 * in Lambda: the AWS SDK creates it too, but without `streamifyResponse`.
 */
const streamified = (handle: StreamHandler) =>
  typeof awslambda === "object" && "streamifyResponse" in awslambda ? awslambda.streamifyResponse(handle) : handle;

/** The client may keep the answer, but must ask before each use whether it is current. Shared caches may not keep it. */
const REVALIDATED = { "Cache-Control": "private, no-cache" } as const;

const varyOnEncoding = ({ Vary }: Readonly<Record<string, string>>): Record<string, string> => ({
  Vary: Vary === undefined ? "Accept-Encoding" : `${Vary}, Accept-Encoding`,
});

/** Returns the headers about compression. The service compresses a streamed answer itself, because API Gateway does not. */
function encodingHeaders(request: Request, headers: Readonly<Record<string, string>>): Record<string, string> {
  const vary = varyOnEncoding(headers);
  return request.method !== "HEAD" && acceptsGzip(request) ? { ...vary, "Content-Encoding": "gzip" } : vary;
}

/** Returns true if the client accepts gzip: `Accept-Encoding` contains `gzip` or `*` with a weight above zero (RFC 9110). */
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

/** Approximate length of the pieces in which text is sent. It is enough for good compression and needs little memory. */
const PIECE_CHARACTERS = 64 * 1024;

export interface StreamedAnswer extends Pick<APIGatewayProxyResult, "statusCode" | "headers"> {
  /** The parts of the body. A part need only be valid until the next one is requested. */
  readonly pieces: Iterable<Piece> | AsyncIterable<Piece>;
}

/** Yields a JSON array in parts of about 64 KB. Each item is validated before it is written. */
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

/** Waits for the first part of the body. An error before it can still lead to a problem body, because nothing was sent yet. */
export async function begun(pieces: AsyncGenerator<Piece>): Promise<AsyncIterable<Piece>> {
  const first = await pieces.next();
  async function* all(): AsyncGenerator<Piece> {
    if (first.done === true) return;
    yield first.value;
    yield* pieces;
  }
  return all();
}

/**
 * Resolves when the stream has accepted the whole answer. An error destroys the stream, so that no client mistakes a part for the whole
 * answer.
 */
export async function writeAnswer(stream: Writable, { statusCode, headers, pieces }: StreamedAnswer): Promise<void> {
  const body = awslambda.HttpResponseStream.from(stream, { statusCode, headers });
  const isZipped = headers?.["Content-Encoding"] === "gzip";
  try {
    // At most one part is in memory, because a part may have several megabytes.
    await pipeline(Readable.from(isZipped ? gzipped(pieces) : copied(pieces), { highWaterMark: 1 }), body);
  } catch (error) {
    log.error("answer broken off", errorFields(error));
    throw error;
  }
}
