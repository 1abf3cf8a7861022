/** Writes the log lines with which Lambda itself reports an invocation. */
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

type Write = (line: string) => void;

export function writeStart(requestId: string, write: Write): void {
  system("platform.start", { requestId, version: "$LATEST" }, write);
}

interface Report extends InvocationEnd {
  readonly requestId: string;
  readonly durationMs: number;
}

export function writeReport(spec: FunctionSpec, { durationMs, ...report }: Report, write: Write): void {
  const metrics = { durationMs, billedDurationMs: durationMs, memorySizeMB: spec.MemorySize };
  system("platform.report", { ...report, metrics }, write);
}

/**
 * Writes one of Lambda's system log lines. It ignores the function's system log level, so that developers see each invocation. A deployment
 * writes only the lines of failed invocations.
 */
function system(type: string, record: object, write: Write): void {
  write(JSON.stringify({ time: new Date().toISOString(), type, record }));
}
