/** The way to make an API function whose answer may pass 6 MB: what `endpoint()` does, and the answer streamed, gzipped where accepted. */
import type { Writable } from "node:stream";
import type { APIGatewayProxyEvent, Context } from "aws-lambda";
import type * as z from "zod/mini";
import { commonHeaders } from "#shared/http/answer.ts";
import { answering, type Call, checked, requestChain } from "#shared/http/chain.ts";
import type { Contract } from "#shared/http/contract.ts";
import type { Request } from "#shared/http/request.ts";
import { begun, jsonArray, type Piece, type StreamedAnswer, writeAnswer } from "#shared/http/stream-body.ts";
import { limits } from "#shared/limits.ts";

type StreamHandler = (event: APIGatewayProxyEvent, stream: Writable, context: Context) => Promise<void>;

interface StreamedCall<Path, Query, Body> extends Call<Path, Query, Body> {
  /** A header of the answer, set before its first item. */
  readonly header: (name: "Link", value: string) => void;
}

export interface StreamEndpoint {
  readonly contract: Contract;
}

/** For an answer that is one JSON value: it is whole before its first byte leaves. */
export function streamEndpoint<
  Response extends z.ZodMiniType,
  Path extends z.ZodMiniType,
  Query extends z.ZodMiniType,
  Body extends z.ZodMiniType,
>(
  contract: Contract<Path, Query, Body, Response>,
  work: (call: Call<z.output<Path>, z.output<Query>, z.output<Body>>) => Promise<z.input<Response>>,
): StreamEndpoint {
  return streaming(contract, async function* (call) {
    yield JSON.stringify(checked(contract.response, await work(call)));
  });
}

/** For an answer that is a JSON array of any length: each item is checked and written as it comes. */
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

/** For an answer that the work writes as JSON text itself, in pieces: what it writes fits the contract by its own tests. */
export function streamText<Path extends z.ZodMiniType, Query extends z.ZodMiniType, Body extends z.ZodMiniType>(
  contract: Contract<Path, Query, Body>,
  work: (call: Call<z.output<Path>, z.output<Query>, z.output<Body>>) => Promise<Iterable<Piece>>,
): StreamEndpoint {
  return streaming(contract, async function* (call) {
    yield* await work(call);
  });
}

/** For an answer that is the contract's file, in pieces of its text. */
export function streamFile<Path extends z.ZodMiniType, Query extends z.ZodMiniType, Body extends z.ZodMiniType>(
  contract: Contract<Path, Query, Body> & Required<Pick<Contract, "file">>,
  work: (call: Call<z.output<Path>, z.output<Query>, z.output<Body>>) => Promise<AsyncIterable<string>>,
): StreamEndpoint {
  return streaming(contract, async function* (call) {
    yield* await work(call);
  });
}

/** What goes wrong before the first piece is there is answered with a problem; what goes wrong later breaks the connection. */
function streaming<Path extends z.ZodMiniType, Query extends z.ZodMiniType, Body extends z.ZodMiniType>(
  contract: Contract<Path, Query, Body>,
  piecesOf: (call: StreamedCall<z.output<Path>, z.output<Query>, z.output<Body>>) => AsyncGenerator<Piece>,
): StreamEndpoint {
  const chain = requestChain(contract, limits.streamBodyMs, async (request, call): Promise<StreamedAnswer> => {
    const added: Record<string, string> = {};
    const header = (name: "Link", value: string): void => {
      added[name] = value;
    };
    const pieces = await begun(piecesOf({ ...call, header }));
    const headers = { ...contentHeaders(contract), ...added, ...commonHeaders(request) };
    return { statusCode: contract.status, headers: { ...headers, ...encodingHeaders(request, headers) }, pieces };
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
 * Outside of Lambda's runtime, where the document is made and tests run, the bare handler is what there is. The SDK, which tests
 * load, makes a global of this name, too, with no streaming in it.
 */
const streamified = (handle: StreamHandler) =>
  typeof awslambda === "object" && "streamifyResponse" in awslambda ? awslambda.streamifyResponse(handle) : handle;

/** API Gateway compresses no streamed answer. */
function encodingHeaders(request: Request, { Vary }: Readonly<Record<string, string>>): Record<string, string> {
  const vary = { Vary: Vary === undefined ? "Accept-Encoding" : `${Vary}, Accept-Encoding` };
  return acceptsGzip(request) ? { ...vary, "Content-Encoding": "gzip" } : vary;
}

/** RFC 9110: `gzip` or `*`, unless its weight is zero. */
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
