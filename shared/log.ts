/** Writes each log entry as one line of JSON, with the context of the request. Never log payloads, secrets or e-mail addresses. */
import { AsyncLocalStorage } from "node:async_hooks";

export type LogFields = Record<string, string | number | boolean | null | undefined>;
type Level = "debug" | "info" | "warn" | "error";

const order: Record<Level, number> = { debug: 10, info: 20, warn: 30, error: 40 };
const context = new AsyncLocalStorage<LogFields>();

/** Maximum characters of a text in a log line. CloudWatch truncates a line at 256 KB, and a metric filter cannot parse a truncated line. */
const LOGGED_TEXT = 4_000;

export function withLogContext<T>(fields: LogFields, work: () => Promise<T>): Promise<T> {
  return context.run({ ...context.getStore(), ...fields }, work);
}

/** Adds fields to all later log entries of the innermost `withLogContext`, which is usually the current request or message. */
export function addLogContext(fields: LogFields): void {
  const store = context.getStore();
  if (store !== undefined) Object.assign(store, fields);
}

export const log = {
  debug: (event: string, fields?: LogFields): void => write("debug", event, fields),
  info: (event: string, fields?: LogFields): void => write("info", event, fields),
  warn: (event: string, fields?: LogFields): void => write("warn", event, fields),
  error: (event: string, fields?: LogFields): void => write("error", event, fields),
};

/** Returns the log fields of an error. Its message is one of them, so error messages must contain no values of the request. */
export function errorFields(error: unknown): LogFields {
  if (!(error instanceof Error)) return { error: typeof error };
  const { name, message, stack, cause } = error;
  const because = cause instanceof Error ? { cause: cause.name, causeMessage: cause.message } : {};
  return { error: name, message, stack, ...because };
}

/** In Lambda, the runtime adds time, level and request id, and puts the fields into `message`, where metric filters expect them. */
function write(level: Level, event: string, fields: LogFields = {}): void {
  const message = bounded({ event, ...context.getStore(), ...fields });
  if (process.env.AWS_LAMBDA_LOG_FORMAT === "JSON") console[level](message);
  else if (order[level] >= threshold()) writeToStderr(level, message);
}

/** Log lines go to standard error, because command-line tools print their results to standard output. */
function writeToStderr(level: Level, message: LogFields): void {
  const line = { timestamp: new Date().toISOString(), level: level.toUpperCase(), message };
  process.stderr.write(`${JSON.stringify(line)}\n`);
}

const bounded = (fields: LogFields): LogFields =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === "string" && value.length > LOGGED_TEXT ? `${value.slice(0, LOGGED_TEXT)}…` : value,
    ]),
  );

function threshold(): number {
  const level = process.env.LOG_LEVEL;
  return level === "debug" || level === "warn" || level === "error" ? order[level] : order.info;
}
