/**
 * The measured cost of each operation. The measurements are stored in measured.json, because measuring takes much longer than computing the
 * model.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { operations as requests } from "../../load/arrivals.ts";

/** The kinds of requests that a rep sends, and the invocation of the authorizer. */
export const operations = [...requests, "authorize"] as const;
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
 * What one operation uses in a warm function: the mean of several requests to the local service. Two values have another source: `cpuMs` is
 * measured in a separate process that runs only the bundled function, and the units and rounds of `authorize` are constants. A list or
 * search reads all prospects of its page from the table.
 */
const Usage = z.object({
  readUnits: z.number(),
  writeUnits: z.number(),
  rounds: z.number(),
  /** Bytes of the answer on the wire: status line, headers and compressed body. */
  sentBytes: z.number(),
  /** Bytes of the request's line in the access log of API Gateway. A function logs only failed and very large requests. */
  accessLogBytes: z.number(),
  /** Processor milliseconds of one call of the warm bundled handler. */
  cpuMs: z.number(),
});
export type Usage = z.infer<typeof Usage>;

/** The cost of loading the index of a company with 100 000 prospects into the memory of a function. */
const Load = z.object({ readUnits: z.number(), cpuMs: z.number(), bytes: z.number() });
export type Load = z.infer<typeof Load>;

export const Measured = z.object({
  date: z.string(),
  operations: z.record(z.enum(operations), Usage),
  /**
   * Processor milliseconds in which a new process loads a function and answers its first request, minus those of a warm call. The keys are
   * the files of the functions.
   */
  starts: z.record(z.string(), z.number()),
  /**
   * The cost of loading an index, for each kind of read: `list` loads the columns for lists, `pins` also loads the coordinates, and
   * `search` loads all columns.
   */
  loads: z.object({ list: Load, pins: Load, search: Load }),
  /** Bytes of the answer 304 to a request for a map view. */
  notModifiedBytes: z.number(),
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
