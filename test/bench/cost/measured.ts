/**
 * The measured cost of each operation. The measurements are stored in measured.json, because measuring takes much longer than computing the
 * model.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";

/** The kinds of requests that a rep sends, and the invocation of the authorizer. */
export const operations = ["pins", "patch", "detail", "list", "search", "create", "authorize"] as const;
export type Operation = (typeof operations)[number];

/** The file of the function that serves each operation. */
export const functionOf: Record<Operation, string> = {
  pins: "prospects/pins",
  patch: "prospects/update",
  detail: "prospects/get",
  list: "prospects/list",
  search: "prospects/list",
  create: "prospects/create",
  authorize: "authorize",
};

/**
 * What one operation uses in a warm function: the mean of several requests to the local service. A round is one request to the table, or
 * several concurrent ones. There are two exceptions. `cpuMs` is measured in a separate process that runs only the bundled function. The
 * units and rounds of `authorize` are constants.
 */
const Usage = z.object({
  readUnits: z.number(),
  writeUnits: z.number(),
  rounds: z.number(),
  /** Bytes of the answer on the wire: status line, headers and compressed body. */
  sentBytes: z.number(),
  /** Number and bytes of the function's log lines, without the lines that Lambda itself writes for each invocation. */
  logLines: z.number(),
  logBytes: z.number(),
  /** Bytes of the request's line in the access log of API Gateway. */
  accessLogBytes: z.number(),
  /** Processor milliseconds of one call of the warm bundled handler, minus those of a handler that does nothing. */
  cpuMs: z.number(),
});
export type Usage = z.infer<typeof Usage>;

/** The cost of starting a function in a new process. */
const Start = z.object({
  /** Processor milliseconds of loading the bundle, minus those of loading the bundle of a handler that does nothing. */
  loadCpuMs: z.number(),
  /** Processor milliseconds of the first call, minus those of a warm call. */
  firstCallCpuMs: z.number(),
});

/** The cost of loading the index of a company with 100 000 prospects into the memory of a function. */
const Load = z.object({ readUnits: z.number(), cpuMs: z.number(), bytes: z.number(), pieces: z.number() });
export type Load = z.infer<typeof Load>;

/** The cost of the functions that the table's stream starts after a write. */
const Background = z.object({
  /** Read and write units of the index flush, divided by the number of writes. */
  readUnits: z.number(),
  writeUnits: z.number(),
  /** Mean number and bytes of the log lines of one invocation of `events/publish`, and of one of `index/flush`. */
  publishLines: z.number(),
  publishBytes: z.number(),
  flushLines: z.number(),
  flushBytes: z.number(),
});

/** The cost of a list or a search whose prospects the function already has in memory. */
const InMemory = z.object({ readUnits: z.number(), rounds: z.number(), cpuMs: z.number() });

export const Measured = z.object({
  date: z.string(),
  /** `list` and `search` read all prospects of their page from the table. */
  operations: z.record(z.enum(operations), Usage),
  inMemory: z.object({ list: InMemory, search: InMemory }),
  /** The cost of starting each function, by the file of the function. */
  starts: z.record(z.string(), Start),
  /**
   * The cost of loading an index, for each kind of read: `list` loads the columns for lists, `pins` also loads the coordinates, and
   * `search` loads all columns.
   */
  loads: z.object({ list: Load, pins: Load, search: Load }),
  background: Background,
  /** The cost of a map view that is answered with 304. */
  notModified: z.object({ readUnits: z.number(), rounds: z.number(), sentBytes: z.number(), cpuMs: z.number() }),
  /**
   * Number of alarms, custom metrics, dashboards, encryption keys, and queues that functions read, in the production preset, without those
   * of the backups and of the scheduled smoke test. Each of them has a fixed price per month.
   */
  resources: z.object({
    alarms: z.number(),
    metrics: z.number(),
    dashboards: z.number(),
    keys: z.number(),
    queues: z.number(),
  }),
  /** Number of pins in the measured map view. */
  pinsInView: z.number(),
  /** Mean length of the JSON text in the row of a prospect. */
  rowTextBytes: z.number(),
  /** Mean bytes that one prospect needs in the table: its row with the status history, its note, and its share of the index. */
  storedBytes: z.number(),
});
export type Measured = z.infer<typeof Measured>;

const file = join(import.meta.dirname, "measured.json");

export const readMeasured = (): Measured => Measured.parse(JSON.parse(readFileSync(file, "utf8")));

export function writeMeasured(measured: Measured): void {
  const rounded = (_: string, value: unknown): unknown =>
    typeof value === "number" ? Number(value.toFixed(3)) : value;
  writeFileSync(file, `${JSON.stringify(measured, rounded, 2)}\n`);
}
