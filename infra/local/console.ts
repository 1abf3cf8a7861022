/** The console that Lambda's Node.js runtime gives to a function whose log format is JSON: a line of JSON for each call. */
import { format } from "node:util";

/** From the most detailed to the least. */
export const logLevels = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Levels of Lambda's own lines. */
export const systemLogLevels = ["DEBUG", "INFO", "WARN"] as const;

const methods = {
  trace: "TRACE",
  debug: "DEBUG",
  info: "INFO",
  log: "INFO",
  warn: "WARN",
  error: "ERROR",
  fatal: "FATAL",
} as const satisfies Record<string, LogLevel>;

/** A method below `least` does nothing. `requestId` gives the id of the invocation that runs, if one does. */
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

/** One value becomes `message` as it is, so that a text stays one text even where it is JSON; several become one text. */
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
