/** The measured cost of each operation, which measured.json stores, because measuring takes much longer than computing the model. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { operations as requests } from "../../load/arrivals.ts";

/** The kinds of requests that a rep sends, and the invocation of the authorizer. */
export const operations = [...requests, "authorize"] as const;
export type Operation = (typeof operations)[number];

export const functionOf: Record<Operation, string> = {
  pins: "prospects/pins",
  patch: "prospects/update",
  detail: "prospects/get",
  list: "prospects/list",
  search: "prospects/list",
  create: "prospects/create",
  authorize: "authorize",
};

/** What one operation uses in a warm function. A list or search reads all prospects of its page from the table. */
const Usage = z.object({
  readUnits: z.number(),
  writeUnits: z.number(),
  rounds: z.number(),
  /** Bytes of the answer on the wire: status line, headers and compressed body. */
  sentBytes: z.number(),
  /** Bytes of the request's line in the access log of API Gateway. */
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
  /** Processor milliseconds in which a new process loads a function and answers its first request, minus those of a warm call. */
  starts: z.record(z.string(), z.number()),
  /** `list` loads the columns for lists, `pins` also the coordinates, and `search` all columns. */
  loads: z.object({ list: Load, pins: Load, search: Load }),
  /** Bytes of the answer 304 to a request for a map view. */
  notModifiedBytes: z.number(),
  /**
   * Numbers of resources with a fixed price in the preset `production`, without those of backups and of the scheduled smoke test. `queues`
   * counts only queues that functions read.
   */
  resources: z.object({
    alarms: z.number(),
    metrics: z.number(),
    dashboards: z.number(),
    keys: z.number(),
    queues: z.number(),
  }),
  pinsInView: z.number(),
  /** Mean bytes of a prospect in the table: its row with the status history, its note, and its share of the index. */
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
