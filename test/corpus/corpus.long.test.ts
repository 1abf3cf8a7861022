/**
 * Compares the answers to accepted files, queries and polygons with recorded answers, so that a change of the reader cannot change them
 * unnoticed. After an intended change, `CORPUS_RECORD=1 vitest run --project long test/corpus` writes the answers anew. The difference
 * of `recorded.jsonl` then shows which cases changed.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { type Answer, at, type Client, send, tokenOf } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { bodyOf, dataOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { files, polygons, queries, sample } from "./cases.ts";

const path = new URL("recorded.jsonl", import.meta.url);
const isRecording = process.env.CORPUS_RECORD === "1";
const Line = z.tuple([z.string(), z.unknown()]);
const lines = isRecording ? [] : readFileSync(path, "utf8").trim().split("\n");
const recorded = new Map(lines.map((line) => z.parse(Line, JSON.parse(line))));

afterAll(() => {
  if (isRecording) writeFileSync(path, [...recorded].map((line) => `${JSON.stringify(line)}\n`).join(""));
});

function expectRecorded(name: string, answer: unknown): void {
  if (isRecording) recorded.set(name, answer);
  expect(answer).toEqual(recorded.get(name));
}

// Files are imported into the second company, so that the queries and polygons find the same prospects in each run.
const as = await newTeam();

/** An import has a lower rate than other requests, so it is repeated when the service says. */
async function post(client: Client, file: Uint8Array<ArrayBuffer>, query = ""): Promise<Answer> {
  const headers = { Authorization: `Bearer ${await tokenOf(client.email)}` };
  for (;;) {
    const answer = await send("POST", `/api/prospects/import${query}`, { body: csvForm(file), headers });
    if (answer.status !== 429) return answer;
    await wait(1_000 * Number(answer.headers.get("retry-after")));
  }
}
const Result = z.object({
  imported: z.number(),
  updated: z.number(),
  skipped: z.number(),
  encoding: z.nullable(z.string()),
  ignoredColumns: z.array(z.string()),
  errors: z.array(z.object({ row: z.number(), message: z.string() })),
});
bodyOf(await post(as.owner, sample), 200, Result);

/** Returns what the newest prospects hold, without ids and times. */
async function newest(client: Client, pageSize: number): Promise<unknown[]> {
  if (pageSize === 0) return [];
  const { items } = dataOf(await client.GET("/api/prospects", { params: { query: { pageSize } } }));
  return Promise.all(
    items.map(async ({ id }) => {
      const detail = dataOf(await client.GET("/api/prospects/{id}", at(id)));
      const { name, phoneNumber, secondaryPhoneNumber, emailAddress, lat, lng, source, customFieldData } = detail;
      const { address, currentStatus, assignedTo, tags, notes } = detail;
      const { address1, address2, city, state, zip } = address ?? {};
      return {
        ...{ name, phoneNumber, secondaryPhoneNumber, emailAddress, lat, lng, source, customFieldData },
        address: address && { address1, address2, city, state, zip },
        status: currentStatus?.value,
        assignedTo: assignedTo?.firstName,
        tags: tags.map(({ tag }) => tag.value),
        notes: notes.map(({ body }) => body),
      };
    }),
  );
}

test.each(files)("the file is read as before: $name", async ({ name, bytes, query }) => {
  const result = bodyOf(await post(as.otherOwner, bytes, query), 200, Result);
  const isKept = query?.includes("dryRun") !== true;
  expectRecorded(`file: ${name}`, { ...result, rows: isKept ? await newest(as.otherOwner, result.imported) : [] });
});

test.each(queries)("the query finds the same as before: %s", async (query) => {
  const Found = z.object({ total: z.number(), items: z.array(z.object({ name: z.string() })) });
  const { total, items } = bodyOf(await as.owner("GET", `/api/prospects${query}`), 200, Found);
  expectRecorded(`query: ${query}`, { total, names: items.map(({ name }) => name) });
});

test.each(polygons)("the polygon holds the same prospects as before: $name", async ({ name, polygon }) => {
  const points = polygon.map(([lng, lat]): [number, number] => [lng, lat]);
  const territory = dataOf(await as.owner.POST("/api/territories", { body: { name, polygon: points } }), 201);
  expect(territory.polygon).toEqual(points);
  const query = { territoryId: `${territory.id}`, pageSize: 500 };
  const { items } = bodyOf(
    await as.owner("GET", `/api/prospects?${new URLSearchParams({ territoryId: query.territoryId, pageSize: "500" })}`),
    200,
    z.object({ items: z.array(z.object({ name: z.string() })) }),
  );
  const collection = z.object({
    features: z.array(z.object({ properties: z.object({ name: z.string() }), geometry: z.unknown() })),
  });
  const { features } = bodyOf(await as.owner("GET", "/api/territories.geojson"), 200, collection);
  const geometry = features.find(({ properties }) => properties.name === name)?.geometry;
  expectRecorded(`polygon: ${name}`, { names: items.map((item) => item.name), geometry });
});
