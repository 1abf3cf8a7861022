/** Runs the Lambda functions of the templates on this machine, with Lambda's limits of their requests, responses and time. */
import { randomUUID } from "node:crypto";
import { messageOf } from "../../cli/command/error.ts";
import { nameOfArn } from "../template/names.ts";
import { type FunctionSpec, isQueue, type Mapping, type Stack, servesRequests } from "../template/stack.ts";
import { InvocationError, type ResponseSink } from "./environment.ts";
import { type FunctionHost, Pool } from "./pool.ts";
import { createTurns } from "./turns.ts";

/** Lambda's maximum size of a request and of a response that is not streamed. */
const PAYLOAD_LIMIT_BYTES = 6 * 1024 * 1024;
/** Lambda's maximum size of a streamed response. */
const STREAM_LIMIT_BYTES = 200 * 1024 * 1024;

export type LocalFunction = ReturnType<typeof createFunction>;

interface InvokeOptions {
  readonly requestId?: string;
  /** Receives a streamed response. It is undefined if the caller expects the whole response as the result of `invoke`. */
  readonly sink?: ResponseSink;
  /** The company, or another client, whose slow readers must not hold all environments. */
  readonly holder?: string;
}

export function createFunction(spec: FunctionSpec, maxEnvironments: number, host: FunctionHost) {
  const pool = new Pool(spec, maxEnvironments, host);
  const turnOf = createTurns(Math.max(1, maxEnvironments - 1));
  const timeoutMs = spec.Timeout * 1000;
  let calls = 0;
  /**
   * Writes one of Lambda's system log lines. The local service ignores the function's system log level, so that developers see each
   * invocation. A deployment writes only the lines of failed invocations.
   */
  const log = (type: string, record: object): void =>
    host.log(spec, JSON.stringify({ time: new Date().toISOString(), type, record }));
  return {
    spec,
    calls: () => calls,
    stop: () => pool.stop(),
    async invoke(event: unknown, { requestId = randomUUID(), sink, holder }: InvokeOptions = {}): Promise<string> {
      calls++;
      const text = JSON.stringify(event);
      if (Buffer.byteLength(text) > PAYLOAD_LIMIT_BYTES) throw tooLarge("RequestTooLargeException", "request");
      const endTurn = sink === undefined || holder === undefined ? undefined : await turnOf(holder);
      const environment = await pool.take().catch((error: unknown) => {
        endTurn?.();
        throw error;
      });
      const started = Date.now();
      const report = (end: object): void => {
        const durationMs = Date.now() - started;
        const metrics = { durationMs, billedDurationMs: durationMs, memorySizeMB: spec.MemorySize };
        log("platform.report", { requestId, ...end, metrics });
      };
      let failed = true;
      log("platform.start", { requestId, version: "$LATEST" });
      try {
        const deadline = started + timeoutMs;
        const call = { type: "invoke", event: text, requestId, deadline, streamed: sink !== undefined } as const;
        const answer = await environment.invoke(call, timeoutMs, sink && limited(sink));
        if (Buffer.byteLength(answer) > PAYLOAD_LIMIT_BYTES)
          throw tooLarge("Function.ResponseSizeTooLarge", "response");
        failed = false;
        report({ status: "success" });
        return answer;
      } catch (error) {
        report(endOf(error));
        throw error;
      } finally {
        pool.giveBack(environment);
        endTurn?.();
        host.onInvoked(failed);
      }
    },
  };
}

/**
 * Describes the end of a failed invocation. The status `error` means that the handler threw an error, and `failure` that the runtime
 * failed, for example by a crash. Lambda's own log lines have no field `reason`.
 */
function endOf(error: unknown): object {
  if (!(error instanceof InvocationError)) return { status: "failure", reason: messageOf(error) };
  const { type: errorType, message: reason } = error;
  if (errorType === "Sandbox.Timedout") return { status: "timeout", errorType, reason };
  return { status: errorType.startsWith("Runtime.") ? "failure" : "error", errorType, reason };
}

/** Limits a streamed response: if it exceeds Lambda's maximum size, `chunk` fails. The connection then breaks, so the client notices it. */
function limited(sink: ResponseSink): ResponseSink {
  let bytes = 0;
  return {
    head: (metadata) => sink.head(metadata),
    chunk: async (data) => {
      bytes += data.length;
      if (bytes > STREAM_LIMIT_BYTES) throw new Error(`the response is larger than ${STREAM_LIMIT_BYTES} bytes`);
      await sink.chunk(data);
    },
  };
}

const tooLarge = (errorType: string, what: string): InvocationError =>
  new InvocationError({ errorType, errorMessage: `the ${what} is larger than ${PAYLOAD_LIMIT_BYTES} bytes` });

/** Maximum number of environments of a function, by the source of its invocations. Each is a thread with about 30 MB of memory. */
const MAX_ENVIRONMENTS = { api: 4, events: 2, queue: 10 } as const;

export const createFunctions = (
  stack: Stack,
  host: FunctionHost,
  requestEnvironments: number = MAX_ENVIRONMENTS.api,
): ReadonlyMap<string, LocalFunction> =>
  new Map(
    stack.functions.map((spec) => [
      spec.name,
      createFunction(spec, servesRequests(spec, stack.api) ? requestEnvironments : environmentsFor(spec, stack), host),
    ]),
  );

function environmentsFor({ name }: FunctionSpec, { eventSources }: Stack): number {
  const mapping = eventSources.find(({ FunctionName }) => nameOfArn(FunctionName) === name);
  return mapping !== undefined && isQueue(mapping) ? concurrencyOf(mapping) : MAX_ENVIRONMENTS.events;
}

export const concurrencyOf = ({ ScalingConfig }: Mapping): number =>
  Math.min(ScalingConfig?.MaximumConcurrency ?? MAX_ENVIRONMENTS.queue, MAX_ENVIRONMENTS.queue);
