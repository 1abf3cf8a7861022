/** Runs a Lambda function on this machine, with Lambda's limits of its requests, responses and time. */
import { randomUUID } from "node:crypto";
import type { FunctionSpec } from "../template/stack.ts";
import { InvocationError, type ResponseSink } from "./environment.ts";
import { type FunctionHost, Pool } from "./pool.ts";
import { endOf, type InvocationEnd, reportLine, startLine } from "./report.ts";
import { createTurns } from "./turns.ts";

/** Lambda's maximum size of a request and of a response that is not streamed. */
const PAYLOAD_LIMIT_BYTES = 6 * 1024 * 1024;
/** Lambda's maximum size of a streamed response. */
const STREAM_LIMIT_BYTES = 200 * 1024 * 1024;

export interface LocalFunction {
  readonly spec: FunctionSpec;
  readonly calls: () => number;
  invoke(event: unknown, options?: InvokeOptions): Promise<string>;
  stop(): Promise<void>;
}

export interface InvokeOptions {
  readonly requestId?: string;
  /** Receives a streamed response. It is undefined if the caller expects the whole response as the result of `invoke`. */
  readonly sink?: ResponseSink;
  /** The company, or another client, whose slow readers must not hold all environments. */
  readonly holder?: string;
}

export function createFunction(spec: FunctionSpec, maxEnvironments: number, host: FunctionHost): LocalFunction {
  const max = Math.min(maxEnvironments, spec.ReservedConcurrentExecutions ?? maxEnvironments);
  const pool = new Pool(spec, max, host);
  const turnOf = createTurns(Math.max(1, max - 1));
  const timeoutMs = spec.Timeout * 1000;
  let calls = 0;
  const write = (line: string): void => host.log(spec, line);
  return {
    spec,
    calls: () => calls,
    stop: () => pool.stop(),
    async invoke(event, { requestId = randomUUID(), sink, holder } = {}) {
      calls++;
      const text = JSON.stringify(event);
      if (Buffer.byteLength(text) > PAYLOAD_LIMIT_BYTES) throw tooLarge("RequestTooLargeException", "request");
      const endTurn = sink === undefined || holder === undefined ? undefined : await turnOf(holder);
      const environment = await pool.take().catch((error: unknown) => {
        endTurn?.();
        throw error;
      });
      const started = Date.now();
      const report = (end: InvocationEnd): void => write(reportLine(spec, requestId, Date.now() - started, end));
      let failed = true;
      write(startLine(requestId));
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
 * Returns a sink whose `chunk` fails when the response exceeds Lambda's size limit. The connection to the client then breaks, so the client
 * sees that the response is incomplete.
 */
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
