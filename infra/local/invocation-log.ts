/** Lambda's own lines about an invocation, as it writes them where the log format is JSON. */
import { systemLogLevels } from "./console.ts";
import { InvocationError } from "./environment.ts";
import { messageOf } from "./error.ts";
import type { FunctionSpec } from "./stack.ts";

type SystemLogLevel = (typeof systemLogLevels)[number];

/** How an invocation ended: `failure` is the runtime's, `error` the handler's. */
export interface InvocationEnd {
  readonly status: "success" | "failure" | "error" | "timeout";
  readonly errorType?: string;
  /** Lambda writes none: here it says why an environment ended. */
  readonly reason?: string;
}

export function endOf(error: unknown): InvocationEnd {
  if (!(error instanceof InvocationError)) return { status: "failure", reason: messageOf(error) };
  const { type: errorType, message: reason } = error;
  if (errorType === "Sandbox.Timedout") return { status: "timeout", errorType, reason };
  return { status: errorType.startsWith("Runtime.") ? "failure" : "error", errorType, reason };
}

type Write = (line: string) => void;

export function writeStart(spec: FunctionSpec, requestId: string, write: Write): void {
  system(spec, "INFO", "platform.start", { requestId, version: "$LATEST" }, write);
}

interface Report extends InvocationEnd {
  readonly requestId: string;
  readonly durationMs: number;
}

export function writeReport(spec: FunctionSpec, { durationMs, ...report }: Report, write: Write): void {
  const metrics = { durationMs, billedDurationMs: durationMs, memorySizeMB: spec.MemorySize };
  system(spec, report.status === "success" ? "INFO" : "WARN", "platform.report", { ...report, metrics }, write);
}

function system({ LoggingConfig }: FunctionSpec, level: SystemLogLevel, type: string, record: object, write: Write) {
  const least = LoggingConfig.SystemLogLevel;
  if (systemLogLevels.indexOf(level) < systemLogLevels.indexOf(least)) return;
  write(JSON.stringify({ time: new Date().toISOString(), type, record }));
}
