/** Replaces the global `console` of a function's process, so that log lines have the JSON format of Lambda's Node.js runtime. */
import { format } from "node:util";
import { type LogLevel, logLevels } from "../template/log-levels.ts";

const methods = {
  trace: "TRACE",
  debug: "DEBUG",
  info: "INFO",
  log: "INFO",
  warn: "WARN",
  error: "ERROR",
  fatal: "FATAL",
} as const satisfies Record<string, LogLevel>;

/** Methods below the level `least` write nothing. `requestId` returns the id of the current invocation. */
export function replaceConsole(
  least: LogLevel,
  requestId: () => string | undefined,
  write: (line: string) => void,
): void {
  for (const [method, level] of Object.entries(methods)) {
    const passes = logLevels.indexOf(level) >= logLevels.indexOf(least);
    const call = (...values: unknown[]): void => write(logLine(level, requestId(), values));
    Object.assign(console, { [method]: passes ? call : () => undefined });
  }
}

/** Returns a log line as JSON. A single value becomes the field `message` unchanged. Several values are joined to one string. */
export function logLine(level: LogLevel, requestId: string | undefined, values: readonly unknown[]): string {
  const head = { timestamp: new Date().toISOString(), level, requestId };
  const [first, ...more] = values;
  if (more.length === 0) {
    try {
      return JSON.stringify({ ...head, message: first }, errorsAsFields);
    } catch {
      return JSON.stringify({ ...head, message: format(first) });
    }
  }
  const error = values.find((value) => value instanceof Error);
  return JSON.stringify({ ...head, message: format(...values), ...(error !== undefined && fieldsOf(error)) });
}

const errorsAsFields = (_: string, value: unknown): unknown =>
  value instanceof Error ? { ...fieldsOf(value), ...value } : value;

const fieldsOf = (error: Error): object => ({
  errorType: error.constructor.name,
  errorMessage: error.message,
  stackTrace: error.stack?.split("\n") ?? [],
});
