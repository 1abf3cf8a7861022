/** The measured cost of each operation, and the file that keeps the measurements, so that `npm run cost` is fast. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";

/** The requests of a rep, and the call of the authorizer. */
export const operations = ["pins", "patch", "detail", "list", "search", "create", "authorize"] as const;
export type Operation = (typeof operations)[number];

/** The function that serves each operation, by its file. */
export const functionOf: Record<Operation, string> = {
  pins: "prospects/pins",
  patch: "prospects/update",
  detail: "prospects/get",
  list: "prospects/list",
  search: "prospects/list",
  create: "prospects/create",
  authorize: "authorize",
};

/** What one operation uses in a warm function. The means of several requests through the whole local service. */
const Usage = z.object({
  readUnits: z.number(),
  writeUnits: z.number(),
  rounds: z.number(),
  /** Bytes of the answer on the wire: status line, headers and compressed body. */
  sentBytes: z.number(),
  /** Lines and bytes of the function's log, with the lines of Lambda itself. */
  logLines: z.number(),
  logBytes: z.number(),
  /** Bytes of the line in the access log of API Gateway. */
  accessLogBytes: z.number(),
  /** Processor time of one warm call of the bundled handler, without that of a handler that does nothing. */
  cpuMs: z.number(),
});
export type Usage = z.infer<typeof Usage>;

/** The start of a function in a new process. */
const Start = z.object({
  /** Processor time of loading the bundle, without that of loading an empty one. */
  loadCpuMs: z.number(),
  /** Processor time of the first call beyond that of a warm call. */
  firstCallCpuMs: z.number(),
});

/** The loading of a company's index of 100 000 prospects into the memory of a function. */
const Load = z.object({ readUnits: z.number(), cpuMs: z.number(), bytes: z.number(), pieces: z.number() });
export type Load = z.infer<typeof Load>;

/** The work that the table's stream starts after a write. */
const Background = z.object({
  /** Units of the index flush for one write. */
  readUnits: z.number(),
  writeUnits: z.number(),
  /** Lines and bytes of one invocation. */
  publishLines: z.number(),
  publishBytes: z.number(),
  flushLines: z.number(),
  flushBytes: z.number(),
});

export const Measured = z.object({
  date: z.string(),
  operations: z.record(z.enum(operations), Usage),
  /** By the file of the function. */
  starts: z.record(z.string(), Start),
  /** `list` loads what lists need, `pins` also the coordinates, `search` everything. */
  loads: z.object({ list: Load, pins: Load, search: Load }),
  background: Background,
  /** A map view that is answered with 304. */
  notModified: z.object({ readUnits: z.number(), rounds: z.number(), sentBytes: z.number(), cpuMs: z.number() }),
  /** What the production preset deploys beside functions, with a price by the month. */
  resources: z.object({ alarms: z.number(), metrics: z.number(), dashboards: z.number(), keys: z.number() }),
  /** Pins in the measured map view. */
  pinsInView: z.number(),
  /** Mean bytes of the rows of one prospect in the table: its row, its history, its note and its share of the index. */
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
