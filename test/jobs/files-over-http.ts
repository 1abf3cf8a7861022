/** Sends CSV files to the service as a client does, and waits for the end of imports and bulk jobs. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import * as z from "zod/mini";
import type { ImportJob, NewImport } from "../../docs/client/api.ts";
import { at, type Client } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { dataOf, present } from "../harness/shapes.ts";

/** The fields of the result of an import that the tests compare. */
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

/** Reads an import, export or bulk job again and again until it has ended. */
async function untilEnded<Work extends { readonly state: string }>(read: () => Promise<Work>): Promise<Work> {
  for (;;) {
    const work = await read();
    if (!["awaiting_upload", "queued", "running"].includes(work.state)) return work;
    await sleep(50);
  }
}

export const endedImport = (client: Client, id: number): Promise<ImportJob> =>
  untilEnded(async () => dataOf(await client.GET("/api/prospects/imports/{id}", at(id))));

export const endedExport = (client: Client, id: number) =>
  untilEnded(async () => dataOf(await client.GET("/api/prospects/exports/{id}", at(id))));

/** Uploads a file and returns its import when it has ended. */
export async function uploadFile(client: Client, file: File, body: NewImport = {}): Promise<ImportJob> {
  const { id, upload } = dataOf(await client.POST("/api/prospects/imports", { body }), 201);
  const { url, method, headers } = present(upload ?? undefined);
  expect((await fetch(url, { method, headers, body: file })).status).toBe(200);
  return endedImport(client, id);
}

/** Returns a bulk job when it has ended. Its counts must sum to its total in each state. */
export const endedJob = (client: Client, id: number) =>
  untilEnded(async () => {
    const job = dataOf(await client.GET("/api/jobs/{id}", at(id)));
    expect(job.changed + job.unchanged + job.skipped + job.failed + job.unprocessed).toBe(job.total);
    return job;
  });
