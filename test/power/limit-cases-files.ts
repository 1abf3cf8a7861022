/** Tests the constants of limits.ts about imported files at their value and one beyond. */
import { expect, vi } from "vitest";
import * as z from "zod/mini";
import type { ApiContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { unpacked } from "#shared/db/packed.ts";
import { columnsOf } from "#shared/jobs/import/check.ts";
import { RowFault, StoredImport } from "#shared/jobs/import/stored.ts";
import * as limits from "#shared/limits.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { handler } from "../../functions/prospects/import.ts";
import { prospectRow } from "../harness/prospect-row.ts";
import { lambdaContext, proxyEvent } from "../harness/proxy-event.ts";
import { importFile } from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";
import { faultyJobs } from "../jobs/faulty-jobs.ts";
import { readFile } from "../jobs/read-file.ts";
import { type Case, company, db, NOW, succeeds } from "./limit-stage.ts";

const noNames: Dictionary = { version: 1, statuses: new Map(), tags: new Map(), users: new Map() };
const objects = { put: async () => undefined };

/**
 * Imports a file that updates existing prospects. The company has `blocks` blocks of ids, and its `prospects` prospects are in the first
 * one. Returns false if the service refuses the file.
 */
async function matchesIn(blocks: number, prospects: number, rows = 1): Promise<boolean> {
  const { context, caller } = await company();
  const { companyId } = caller;
  const first = keys.prospectSpan(companyId, 0, 0).pk;
  const itemOf = (i: number) => prospectItem(prospectRow({ companyId, id: i + 1, sourceId: `S${i}` }));
  const query: ApiContext["table"]["query"] = async function* (spec) {
    if (spec.pk === keys.prospectRanges(companyId).pk) yield { type: "prospectRange", from: 0, to: blocks - 1 };
    else if (spec.pk === first) for (let i = 0; i < prospects; i++) yield itemOf(i);
    else if (!("from" in spec)) yield* context.table.query(spec);
  };
  const file = Buffer.from(["sourceId,name", ...Array.from({ length: rows }, (_, i) => `S${i},a`)].join("\n"));
  const options = { matchBy: "sourceId", onMatch: "update", dryRun: true } as const;
  const own = { ...context, objects, table: { ...context.table, query } };
  return succeeds(() => importFile(own, caller, file, options));
}

async function samplesOf(rows: string): Promise<readonly string[] | undefined> {
  const [column] = await columnsOf([Buffer.from(`x\n${rows}`)], "utf-8");
  return column?.samples;
}

/** Imports the file in a job, and returns the stored import. `change` changes the row of the import before the job runs. */
async function imported(
  file: string,
  { isUpdate = false, change = (stored: StoredImport): StoredImport => stored, remainingMs = 900_000 } = {},
): Promise<StoredImport> {
  const jobs = faultyJobs(db(), { ms: NOW });
  const context = jobs.sound();
  const caller = await newOwner(context);
  if (isUpdate) await importFile(context, caller, Buffer.from("sourceId,lat,lng\nS1,1,2"));
  const matching = isUpdate ? { matchBy: "sourceId" as const, onMatch: "update" as const } : {};
  const job = await jobs.uploaded(caller, Buffer.from(file), matching);
  const key = keys.import(job.companyId, job.id);
  const read = async () => StoredImport.parse(await context.table.get(key));
  await context.table.batchPut([{ ...key, ...change(await read()) }]);
  await jobs.run(context, job, () => remainingMs);
  return read();
}

export const files = {
  importRows: {
    most: async (count) => {
      const { context, caller } = await company();
      const file = Buffer.from(`name\n${"a\n".repeat(count)}`);
      return succeeds(() => importFile({ ...context, objects }, caller, file, { dryRun: true }));
    },
  },
  importUpdates: { most: (count) => matchesIn(1, count, count) },
  importBytes: {
    // The query is invalid, so a file that is not too large gets 400, and a larger file gets 413.
    most: async (bytes) => {
      const part = 'Content-Disposition: form-data; name="file"; filename="f.csv"\r\nContent-Type: text/csv';
      const event = {
        ...proxyEvent({ companyId: "1", userId: "2", rights: "owner" }),
        multiValueHeaders: { "content-type": ["multipart/form-data; boundary=b"] },
        multiValueQueryStringParameters: { dryRun: ["no boolean"] },
        body: `--b\r\n${part}\r\n\r\n${"a".repeat(bytes)}\r\n--b--\r\n`,
      };
      vi.stubEnv("TABLE_NAME", "t");
      const { statusCode } = await handler(event, lambdaContext);
      vi.unstubAllEnvs();
      expect([400, 413]).toContain(statusCode);
      return statusCode === 400;
    },
  },
  importMatchProspects: { most: (count) => matchesIn(1, count) },
  importMatchBlocks: { most: (count) => matchesIn(count, 1) },
  rowFault: {
    is: async (length) => {
      const tooLong = "x".repeat(limits.name + 1);
      const faulty = { email: "x", lat: "x", lng: "x", status: "x", name: tooLong, phone: tooLong };
      // The message about `state` is one character longer than that about `city`, and so is one character too long.
      const messages = ["city", "state"].map(async (last) => {
        const row = { ...faulty, address1: "a", city: "a", state: "a", zip: "a", [last]: tooLong };
        const { faults } = await readFile(Buffer.from(`${Object.keys(row)}\n${Object.values(row)}`), noNames);
        return faults.map(({ message }) => message).join();
      });
      const [whole = "", cut] = await Promise.all(messages);
      expect([whole.length, whole.includes("city"), cut]).toEqual([length, true, expect.stringMatching(/and 1 more$/)]);
    },
  },
  columnSamples: { is: async (count) => expect(await samplesOf("a\n".repeat(count + 1))).toHaveLength(count) },
  columnSample: {
    is: async (length) => expect(await samplesOf("a".repeat(length + 1))).toEqual(["a".repeat(length)]),
  },
  jobRows: {
    // Checking a million rows takes seconds. So the stored job says that an earlier invocation has checked all rows but one.
    most: async (count) => {
      const change = (stored: StoredImport): StoredImport => {
        const done = { ...stored.progress.done, prospect: limits.jobRows - 1 };
        return { ...stored, progress: { ...stored.progress, done } };
      };
      const rows = "1,2\n".repeat(count - limits.jobRows + 1);
      const { state, failure } = await imported(`lat,lng\n${rows}`, { change, remainingMs: 1_000 });
      expect(failure ?? "").toBe(state === "failed" ? `The file may hold at most ${limits.jobRows} rows.` : "");
      return state === "running";
    },
  },
  jobErrors: {
    is: async (most) => {
      for (const isUpdate of [false, true]) {
        for (const count of [most, most + 1]) {
          const file = `sourceId,lat,lng\nS1,3,4\n${"S2,x,2\n".repeat(count)}`;
          const { errors, skipped, hasReport, state, updated } = await imported(file, { isUpdate });
          expect([state, updated]).toEqual(["completed", isUpdate ? 1 : 0]);
          const shown = unpacked(z.array(RowFault), errors).length;
          expect([shown, skipped, hasReport]).toEqual([most, count, count > most]);
        }
      }
    },
  },
} as const satisfies Partial<Record<keyof typeof limits, Case>>;
