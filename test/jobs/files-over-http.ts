/** Sends CSV files to the service as a client does, and waits for the end of imports and bulk jobs. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import * as z from "zod/mini";
import type { ImportJob, NewImport } from "../../docs/client/api.ts";
import { at, type Client } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { dataOf, present } from "../harness/shapes.ts";

/** What the tests compare of the result of an import. */
export const Imported = z.object({
  id: z.number(),
  imported: z.number(),
  updated: z.number(),
  skipped: z.number(),
  errors: z.array(z.object({ row: z.number(), message: z.string() })),
});

export type File = string | Uint8Array<ArrayBuffer>;

/** Sends a file to the import within one request. */
export const postFile = (client: Client, file: File, query = "", headers: Record<string, string> = {}) =>
  client.send("POST", `/api/prospects/import${query}`, { body: csvForm(file), headers });

export async function endedImport(client: Client, id: number): Promise<ImportJob> {
  for (;;) {
    const job = dataOf(await client.GET("/api/prospects/imports/{id}", at(id)));
    if (job.state !== "running" && job.state !== "awaiting_upload") return job;
    await sleep(50);
  }
}

/** Uploads a file and returns its import when it has ended. */
export async function uploadFile(client: Client, file: File, body: NewImport = {}): Promise<ImportJob> {
  const { id, upload } = dataOf(await client.POST("/api/prospects/imports", { body }), 201);
  const { url, method, headers } = present(upload ?? undefined);
  expect((await fetch(url, { method, headers, body: file })).status).toBe(200);
  return endedImport(client, id);
}

/** Returns a bulk job when it has ended. Its counts must sum to its total in each state. */
export async function endedJob(client: Client, id: number) {
  for (;;) {
    const job = dataOf(await client.GET("/api/jobs/{id}", at(id)));
    expect(job.changed + job.unchanged + job.skipped + job.failed + job.unprocessed).toBe(job.total);
    if (!["queued", "running"].includes(job.state)) return job;
    await sleep(50);
  }
}

/** Returns an export when it has ended. */
export async function endedExport(client: Client, id: number) {
  for (;;) {
    const made = dataOf(await client.GET("/api/prospects/exports/{id}", at(id)));
    if (made.state !== "running") return made;
    await sleep(50);
  }
}
