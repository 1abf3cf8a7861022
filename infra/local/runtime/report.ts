/** The log lines with which Lambda itself reports an invocation. */
import { messageOf } from "../../cli/command/error.ts";
import type { FunctionSpec } from "../template/stack.ts";
import { InvocationError } from "./environment.ts";

/**
 * The result of an invocation. `error` means that the handler threw an error. `failure` means that the runtime failed, for example by a
 * crash.
 */
export interface InvocationEnd {
  readonly status: "success" | "failure" | "error" | "timeout";
  readonly errorType?: string;
  /** The message of the error that ended the invocation. Lambda's own log lines do not have this field. */
  readonly reason?: string;
}

export function endOf(error: unknown): InvocationEnd {
  if (!(error instanceof InvocationError)) return { status: "failure", reason: messageOf(error) };
  const { type: errorType, message: reason } = error;
  if (errorType === "Sandbox.Timedout") return { status: "timeout", errorType, reason };
  return { status: errorType.startsWith("Runtime.") ? "failure" : "error", errorType, reason };
}

export const startLine = (requestId: string): string => systemLine("platform.start", { requestId, version: "$LATEST" });

export function reportLine(spec: FunctionSpec, requestId: string, durationMs: number, end: InvocationEnd): string {
  const metrics = { durationMs, billedDurationMs: durationMs, memorySizeMB: spec.MemorySize };
  return systemLine("platform.report", { requestId, ...end, metrics });
}

/**
 * Returns one of Lambda's system log lines. The local service ignores the function's system log level, so that developers see each
 * invocation. A deployment writes only the lines of failed invocations.
 */
const systemLine = (type: string, record: object): string =>
  JSON.stringify({ time: new Date().toISOString(), type, record });
