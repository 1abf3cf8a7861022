/** Tests the admin command that exports a whole company to the bucket. */
import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { GetObjectCommand } from "@aws-sdk/client-s3";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { readFile } from "#shared/aws/s3-folders.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { packed } from "#shared/db/packed.ts";
import { remainsOf } from "../../../infra/cli/company/erasure.ts";
import { exportCompany, type Manifest, progressKey } from "../../../infra/cli/company/export.ts";
import { Killed } from "../../harness/killable.ts";
import { killPoints } from "../../harness/kills.ts";
import { present } from "../../harness/shapes.ts";
import { createNote, createProspect } from "../../harness/verbs.ts";
import { newCompany as newPeople } from "../../harness/warm-function.ts";
import { companyScene } from "./company-scene.ts";

const { context, kills, newName, company } = await companyScene();

const Line = z.looseObject({ type: z.string(), pk: z.optional(z.string()), sk: z.optional(z.string()) });

async function bytesOf(Key: string): Promise<Uint8Array> {
  const { s3, bucket } = context.files;
  const { Body } = await s3.send(new GetObjectCommand({ Bucket: bucket, Key }));
  return present(await Body?.transformToByteArray());
}

/** Checks the size, hash and number of lines of each file of an export, and returns the lines of all files. */
async function linesOf({ parts }: Pick<Manifest, "parts">): Promise<z.infer<typeof Line>[]> {
  const lines: z.infer<typeof Line>[] = [];
  for (const { key, lines: count, bytes, sha256 } of parts) {
    const body = await bytesOf(key);
    expect(body).toHaveLength(bytes);
    expect(createHash("sha256").update(body).digest("hex")).toBe(sha256);
    const own = gunzipSync(body).toString().trimEnd().split("\n");
    expect(own).toHaveLength(count);
    lines.push(...own.map((line) => Line.parse(JSON.parse(line))));
  }
  return lines;
}

const keyOf = ({ pk, sk }: z.infer<typeof Line>): string => `${pk} ${sk}`;

async function newCompany() {
  const name = newName();
  const companyId = await company(name);
  // Removes meaningless rows that company-scene.ts has written, because the export would read them as entries of the search index.
  const { pk } = keys.indexHead(companyId);
  await context.rows.table.batchRemove(["Y#1", "Z#1"].map((sk) => ({ pk, sk })));
  return { name, companyId };
}

test("an export has each row and file of the company once, and none of another company", async () => {
  await newCompany();
  const { name, companyId } = await newCompany();
  const before = await remainsOf(context, companyId);
  const { folder, manifest } = await exportCompany(context, companyId);
  const lines = await linesOf(manifest);
  const rows = lines.filter(({ type }) => type !== "file");
  const all = Object.values(before.rows).reduce((sum, count) => sum + count, 0);
  const leftOut = Object.values(manifest.leftOut).reduce((sum, count) => sum + count, 0);
  expect(new Set(rows.map(keyOf)).size).toBe(rows.length);
  expect(rows.length).toBe(all - leftOut);
  expect(manifest).toMatchObject({ companyId, name, suspended: false, counts: { user: 2, company: 1, file: 4 } });
  for (const { key, copy } of lines.filter(({ type }) => type === "file")) {
    expect(Buffer.from(await bytesOf(String(copy))).toString()).toBe(`file of ${name}`);
    expect(String(key)).toContain(`/${companyId}/`);
  }
  expect(
    rows.every(
      ({ pk = "", ...row }) =>
        pk.startsWith(`C#${companyId}#`) ||
        JSON.stringify(row).includes(String(companyId)) ||
        row.type === "companyEmail",
    ),
  ).toBe(true);
  expect(JSON.parse(present(await readFile(context.files, `${folder}manifest.json`)))).toEqual(manifest);
  expect(await readFile(context.files, progressKey(companyId))).toBeUndefined();
});

test("an export shows packed fields as JSON and no secret", async () => {
  const { companyId } = await newCompany();
  const secret = Buffer.from("sealed secret");
  await context.rows.table.batchPut([
    { pk: `C#${companyId}#P#1`, sk: "P#1", type: "prospect", id: 1, fields: JSON.stringify({ name: "Ann" }) },
    { pk: `C#${companyId}#A#1`, sk: "PACK", type: "addressPack", bytes: packed([[1, 2, "1 Main St"]]) },
    {
      pk: `C#${companyId}#W`,
      sk: "W#1",
      type: "webhook",
      id: 5,
      sealedSecret: secret,
      secretMask: "…abcd",
      previousSecret: { sealed: secret },
    },
    ...["WK", "SK", "CK"].map((kind) => ({
      pk: `C#${companyId}#${kind}`,
      sk: "KEY",
      type: "data-key",
      wrapped: secret,
    })),
  ]);
  const { manifest } = await exportCompany(context, companyId);
  const lines = await linesOf(manifest);
  expect(lines).toContainEqual(expect.objectContaining({ type: "prospect", id: 1, name: "Ann" }));
  expect(lines).toContainEqual(expect.objectContaining({ type: "addressPack", bytes: [[1, 2, "1 Main St"]] }));
  const text = JSON.stringify(lines);
  expect(text).not.toContain(secret.toString("base64"));
  expect(text).not.toContain("ealedSecret");
  expect(manifest.leftOut["data-key"]).toBe(3);
});

test("an export has the fields of prospects, and the activity of flushed and of unflushed entries once each", async () => {
  const { table } = context.rows;
  const service = contextOn(table, context.clock);
  const { caller } = await newPeople(service);
  const { companyId } = caller;
  const made: number[] = [];
  for (const isFlushed of [true, false]) {
    const { id } = await createProspect(service, caller, { name: "Ann" });
    made.push(id);
    await createNote(service, caller, id, { body: "called" });
    if (isFlushed) await flush(service, companyId, { least: 1, settleMs: 0 });
  }
  const { manifest } = await exportCompany(context, companyId);
  const Logged = z.looseObject({ facts: z._default(z.array(z.object({ kind: z.string(), prospectId: z.int() })), []) });
  const lines = await linesOf(manifest);
  const prospects = lines.filter(({ type }) => type === "prospect");
  expect(
    prospects.map(({ name }) => name),
    "as the service stores them today",
  ).toEqual(["Ann", "Ann"]);
  const facts = lines.filter(({ type }) => type === "loggedFacts").flatMap((line) => Logged.parse(line).facts);
  const names = facts.map(({ kind, prospectId }) => `${kind} ${prospectId}`).toSorted();
  expect(names).toEqual(made.flatMap((id) => [`creation ${id}`, `note ${id}`]).toSorted());
  expect(manifest.counts.loggedFacts).toBe(2);
});

// The 150 rows have characters of three bytes, and are in one partition, so that one segment of the scan reads all of them.
test.each([
  { text: "x".repeat(10_000), count: 500, partitions: 7, partBytes: 100_000 },
  { text: "\u65e5".repeat(10_000), count: 150, partitions: 1, partBytes: 1_000_000 },
])("a part has at most $partBytes bytes and one page of the table, of $count rows", async (sizes) => {
  const { text, count, partitions, partBytes } = sizes;
  const { companyId } = await newCompany();
  const rows = Array.from({ length: count }, (_, i) => ({
    pk: `C#${companyId}#P#${i % partitions}`,
    sk: `P#${i}`,
    type: "test",
    text,
  }));
  await context.rows.table.batchPut(rows);
  const { manifest } = await exportCompany({ ...context, partBytes }, companyId);
  const lines = await linesOf(manifest);
  expect(lines.filter(({ sk }) => sk?.startsWith("P#"))).toHaveLength(count);
  expect(manifest.parts.length).toBeGreaterThan(5);
  // The export ends a file after the page of the table scan that reaches `partBytes`. A page has at most 1 MB, and a little more as JSON.
  for (const { key } of manifest.parts) {
    expect(gunzipSync(await bytesOf(key)).length).toBeLessThan(partBytes + 1_100_000);
  }
});

test("damaged bytes are exported in base64, and the report and the manifest say where they are", async () => {
  const { companyId } = await newCompany();
  const whole = Buffer.from(packed([[1, 2, "1 Main St"]]));
  const damaged = whole.subarray(0, whole.length - 3);
  const other = Buffer.from("not packed");
  const pk = `C#${companyId}#A#1`;
  await context.rows.table.batchPut([
    { pk, sk: "PACK#1", type: "addressPack", bytes: damaged },
    { pk, sk: "PACK#2", type: "addressPack", bytes: other },
    { pk, sk: "PACK#3", type: "addressPack", bytes: whole },
  ]);
  const lines: string[] = [];
  const { manifest } = await exportCompany({ ...context, progress: (line) => lines.push(line) }, companyId);
  const exported = (await linesOf(manifest)).filter(({ type }) => type === "addressPack");
  expect(Object.fromEntries(exported.map(({ sk, bytes }) => [sk, bytes]))).toEqual({
    "PACK#1": damaged.toString("base64"),
    "PACK#2": other.toString("base64"),
    "PACK#3": [[1, 2, "1 Main St"]],
  });
  expect(manifest.damaged).toBe(1);
  const about = lines.filter((line) => line.includes("damaged"));
  expect(about).toEqual([expect.stringContaining(`${pk} PACK#1: damaged compressed bytes, exported in base64 (`)]);
});

test("an export that is killed at any call resumes, and has each row once", { tags: ["sized"] }, async () => {
  const { companyId } = await newCompany();
  const expected = new Set((await linesOf((await exportCompany(context, companyId)).manifest)).map(keyOf));
  for (const call of killPoints(0)) {
    const first = await kills.at(call, () => exportCompany(context, companyId));
    const lines = await linesOf((await exportCompany(context, companyId)).manifest);
    expect(new Set(lines.map(keyOf))).toEqual(expected);
    expect(lines.filter(({ type }) => type !== "file")).toHaveLength(expected.size - 1);
    if (!(first instanceof Killed)) break;
  }
});
