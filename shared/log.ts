/** One JSON line per fact. Context (request id, company, route) travels by AsyncLocalStorage; payloads, secrets and e-mail addresses are never logged. */
import { AsyncLocalStorage } from "node:async_hooks";

export type LogFields = Record<string, string | number | boolean | null | undefined>;
type Level = "debug" | "info" | "warn" | "error";

const order: Record<Level, number> = { debug: 10, info: 20, warn: 30, error: 40 };
const context = new AsyncLocalStorage<LogFields>();

/** Runs `work` with these fields on every line it logs. */
export function withLogContext<T>(fields: LogFields, work: () => Promise<T>): Promise<T> {
  return context.run({ ...context.getStore(), ...fields }, work);
}

/** Adds fields to the lines that the current unit of work logs from here on. */
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

/** Name and stack of an error: enough to find the place, and no values of the request. */
export function errorFields(error: unknown): LogFields {
  if (!(error instanceof Error)) return { error: typeof error };
  const cause = error.cause instanceof Error ? `${error.cause.name}: ${error.cause.message}` : undefined;
  return { error: error.name, message: error.message, stack: error.stack, cause };
}

let print = (line: string): void => console.log(line);

/** For commands whose stdout is their result. */
export function logToStderr(): void {
  print = (line) => console.error(line);
}

function write(level: Level, event: string, fields: LogFields = {}): void {
  if (order[level] < threshold()) return;
  print(JSON.stringify({ level, event, ...context.getStore(), ...fields }));
}

function threshold(): number {
  const level = process.env.LOG_LEVEL;
  return level === "debug" || level === "warn" || level === "error" ? order[level] : order.info;
}
