/**
 * Handles HTTP requests as API Gateway does. Each request passes these steps: router, authorizer, throttle of the API key, throttle of the
 * stage, size limit of the body, integration.
 */
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { InvocationError, type ResponseSink } from "../runtime/environment.ts";
import type { LocalFunction } from "../runtime/function.ts";
import { LocalError } from "../servers/error.ts";
import { NO_USAGE } from "../servers/listener.ts";
import type { ApiMethod } from "../template/api-definition.ts";
import type { Stack } from "../template/stack.ts";
import {
  type Answer,
  compressed,
  type GatewayError,
  type GatewayErrors,
  gatewayErrors,
  preflightAnswer,
} from "./answers.ts";
import { authorizerOf, Denied, functionAt } from "./authorizers.ts";
import { type Call, methodArn, proxyEvent, readMetadata, readResult } from "./proxy.ts";
import { header, type RawRequest, readBody, readRequest, unreadableParameter } from "./request.ts";
import { createRouter } from "./router.ts";
import { createKeyThrottle, createThrottle } from "./throttle.ts";

export type Gateway = ReturnType<typeof createGateway>;

const DISCARD_MS = 5_000;

interface Lambda {
  readonly function: LocalFunction;
  readonly streamed: boolean;
  readonly timeoutMs: number;
}

type Preflight = ReturnType<typeof preflightAnswer>;

/** @param apiHeaders returns the headers with which the gateway processes a request, as CloudFront's edge function does in a deployment */
export function createGateway(
  stack: Stack,
  functions: ReadonlyMap<string, LocalFunction>,
  apiHeaders: (request: RawRequest) => RawRequest["headers"] = ({ headers }) => headers,
) {
  const { api } = stack;
  const setup = { ...stepsOf(stack, functions), apiHeaders };
  const errors = gatewayErrors(api);
  const answered = (answer: Answer | GatewayError | Denied, requestId: string, encodings: string | undefined) => {
    if (answer instanceof Denied) return errors("ACCESS_DENIED", requestId, answer.context);
    return typeof answer === "string"
      ? errors(answer, requestId)
      : compressed(answer, encodings, api.minimumCompressionSize);
  };
  return {
    /** Sends a response or closes the connection. Never rejects. */
    async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
      const requestId = randomUUID();
      response.on("error", () => undefined);
      try {
        const answer = await answerTo(setup, request, requestId, response);
        if (answer === undefined) return;
        const encodings = request.headers["accept-encoding"]?.toString();
        const sent = await answered(answer, requestId, encodings);
        send(response, answer === "BAD_REQUEST_PARAMETERS" ? naming(unreadableParameter(request.url), sent) : sent);
        if (!request.complete) discard(request);
      } catch {
        // An error here means that the client has disconnected.
        response.destroy();
      }
    },
    refuse: (error: Error & { code?: string }, socket: Duplex) => refuse(error, socket, errors),
    flushAuthorizers: () => setup.authorizer.flush(),
  };
}

function stepsOf({ api, stage, usagePlan }: Stack, functions: ReadonlyMap<string, LocalFunction>) {
  return {
    router: createRouter(api),
    throttle: createThrottle(stage.MethodSettings),
    keyThrottle: createKeyThrottle(usagePlan),
    authorizer: authorizerOf(api, functions),
    integrations: new Map(api.methods.map((method) => [method, integrationOf(method, functions)])),
    constants: {
      stage: stage.StageName,
      stageVariables: stage.Variables,
      binaryMediaTypes: api.binaryMediaTypes,
    },
  };
}

/** Adds the name of the unreadable parameter to the answer, because it helps while developing. API Gateway's own answer lacks it. */
function naming(parameter: string | undefined, answer: Answer): Answer {
  if (parameter === undefined) return answer;
  const message = "has a percent escape that is not UTF-8: write é as %C3%A9, and % as %25";
  const fault = { parameter, code: "invalid_encoding", message };
  return { ...answer, body: String(answer.body).replace('"errors":[]', () => `"errors":${JSON.stringify([fault])}`) };
}

interface Setup extends ReturnType<typeof stepsOf> {
  readonly apiHeaders: (request: RawRequest) => RawRequest["headers"];
}

/** Returns the answer to a request, or undefined if the response was streamed and is already sent. */
async function answerTo(
  { apiHeaders, router, throttle, keyThrottle, authorizer, integrations, constants }: Setup,
  request: IncomingMessage,
  requestId: string,
  response: ServerResponse,
): Promise<Answer | GatewayError | Denied | undefined> {
  // The HTTP server accepts requests without a Host header, so that the gateway can respond with its own error body.
  if (request.headers.host === undefined && request.httpVersion === "1.1") return "BAD_REQUEST_PARAMETERS";
  const received = readRequest(request);
  if (received === undefined) return "BAD_REQUEST_PARAMETERS";
  const raw = { ...received, headers: apiHeaders(received) };
  const match = router(raw.verb, raw.segments);
  if (match === undefined) return "MISSING_AUTHENTICATION_TOKEN";
  const guard = match.method.isGuarded ? authorizer : undefined;
  const authorized = await guard?.authorize(raw.headers, methodArn(constants.stage, raw));
  if (typeof authorized === "string" || authorized instanceof Denied) return authorized;
  // A request that the throttle of the API key refuses must not use a token of the stage's throttle.
  if (match.method.needsKey) {
    const verdict = keyThrottle(authorized?.apiKey, match.method.path, raw.verb);
    if (verdict !== "passes") return verdict === "unknown" ? "INVALID_API_KEY" : "THROTTLED";
  }
  if (!throttle(match.method.path, raw.verb)) return "THROTTLED";
  const body = await readBody(request);
  if (body === undefined) return "REQUEST_TOO_LARGE";
  const integration = integrations.get(match.method);
  if (integration === undefined) throw new Error(`${match.method.name} has no integration`);
  if (typeof integration === "function") return integration(header(raw, "content-type"), requestId);
  const sourceIp = request.socket.remoteAddress ?? "127.0.0.1";
  const call = { ...constants, request: raw, match, body, requestId, sourceIp, authorizer: authorized?.context };
  return integration.streamed ? stream(integration, call, response) : invoke(integration, call);
}

/** Returns who holds an environment while a response is streamed: the company, or the caller of an API without companies. */
const holderOf = ({ authorizer }: Call): string =>
  String(authorizer?.companyId ?? authorizer?.principalId ?? "everybody");

/** Reads and drops the rest of a request's body, because many clients read a response only after they have sent the whole body. */
function discard(request: IncomingMessage): void {
  request.resume();
  const timer = setTimeout(() => request.destroy(), DISCARD_MS);
  request.once("close", () => clearTimeout(timer));
}

function integrationOf(
  { name, integration }: ApiMethod,
  functions: ReadonlyMap<string, LocalFunction>,
): Lambda | Preflight {
  if (integration.type === "mock") return preflightAnswer(name, integration);
  const { uri, responseTransferMode, timeoutInMillis } = integration;
  const { found, kind } = functionAt(uri, functions);
  if (found === undefined) throw new LocalError(`${name}: uri is not a function of the template`);
  const streamed = responseTransferMode === "STREAM";
  if (streamed !== (kind === "response-streaming-invocations")) {
    throw new LocalError(`${name}: responseTransferMode and uri disagree on streaming`);
  }
  return { function: found, streamed, timeoutMs: timeoutInMillis };
}

async function invoke(lambda: Lambda, call: Call): Promise<Answer | GatewayError> {
  const timeout = Promise.withResolvers<"INTEGRATION_TIMEOUT">();
  const timer = setTimeout(() => timeout.resolve("INTEGRATION_TIMEOUT"), lambda.timeoutMs);
  const invoked = lambda.function
    .invoke(proxyEvent(call), { requestId: call.requestId })
    .then((payload): Answer | GatewayError => readResult(payload, call) ?? "INTEGRATION_FAILURE", errorOf);
  const answer = await Promise.race([invoked, timeout.promise]);
  clearTimeout(timer);
  return answer;
}

function errorOf(error: unknown): GatewayError {
  const tooLarge = error instanceof InvocationError && error.type === "RequestTooLargeException";
  return tooLarge ? "REQUEST_TOO_LARGE" : "INTEGRATION_FAILURE";
}

/** Streams a response. If an error occurs after the headers are sent, closes the connection, so that the client notices the fault. */
async function stream(lambda: Lambda, call: Call, response: ServerResponse): Promise<GatewayError | undefined> {
  const sink: ResponseSink = {
    head(text) {
      const metadata = readMetadata(text);
      if (metadata !== undefined) writeHead(response, metadata);
    },
    chunk: (data) => writeChunk(response, data),
  };
  try {
    await lambda.function.invoke(proxyEvent(call), { requestId: call.requestId, sink, holder: holderOf(call) });
  } catch (error) {
    if (!response.headersSent) return errorOf(error);
    response.destroy();
    return undefined;
  }
  if (!response.headersSent) return "INTEGRATION_FAILURE";
  response.end();
  return undefined;
}

function writeChunk(response: ServerResponse, data: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    if (!response.headersSent || response.destroyed) return reject(new Error("the response cannot be written"));
    const closed = (): void => reject(new Error("the reader disconnected"));
    response.once("close", closed);
    response.write(data, () => {
      response.off("close", closed);
      resolve();
    });
  });
}

function send(response: ServerResponse, answer: Answer): void {
  if (response.destroyed) return;
  writeHead(response, answer);
  response.end(answer.body);
}

function writeHead(response: ServerResponse, { status, headers }: Omit<Answer, "body">): void {
  // Each response already has the header `NO_USAGE`, which is correct only if no function was called.
  if (headers.some(([name]) => name.toLowerCase() === "server-timing")) response.removeHeader("Server-Timing");
  for (const [name, value] of headers) {
    // Node.js sets these headers itself. A second value would make the response invalid.
    if (/^(?:content-length|transfer-encoding|connection)$/i.test(name)) continue;
    response.appendHeader(name, value);
  }
  response.writeHead(status);
}

/** Responds to data that is not a valid HTTP request, with the same error body as for all other errors of the gateway. */
function refuse(error: Error & { code?: string }, socket: Duplex, errors: GatewayErrors): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const tooLarge = error.code === "HPE_HEADER_OVERFLOW";
  const { headers, body } = errors(tooLarge ? "REQUEST_TOO_LARGE" : "BAD_REQUEST_PARAMETERS", randomUUID());
  const status = tooLarge ? "413 Content Too Large" : "400 Bad Request";
  const lines = [...headers, NO_USAGE].map(([name, value]) => `${name}: ${value}\r\n`).join("");
  socket.end(
    `HTTP/1.1 ${status}\r\n${lines}Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
