/** Tests that streamed answers above 6 MB (Lambda's limit for buffered answers) arrive complete. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { bodyOf, Identified } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();
const BUFFERED_BYTES = 6 * 1024 * 1024;

async function inLanes<T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) results.push(await work(next++));
  };
  await Promise.all(Array.from({ length: 4 }, lane));
  return results;
}

test("the list of territories is complete and newest first, and each polygon is returned as it was sent", async () => {
  const Territory = z.object({ id: z.number(), createdAt: z.string(), polygon: z.array(z.array(z.number())) });
  const ring = (n: number) => Array.from({ length: 5_000 }, (_, i) => [-104 - (i + n) / 7e15, 39 + (i + n) / 9e15]);
  const made = await inLanes(32, async (n) => {
    const polygon = ring(n);
    const { id } = bodyOf(await as.rep("POST", "/api/territories", { polygon }), 201, Identified);
    return { id, polygon };
  });
  const answer = await as.rep("GET", "/api/territories");
  const territories = bodyOf(answer, 200, z.array(Territory));
  expect(Buffer.byteLength(answer.text)).toBeGreaterThan(BUFFERED_BYTES);
  const polygons = new Map(territories.map(({ id, polygon }) => [id, polygon]));
  expect(territories).toHaveLength(made.length);
  for (const { id, polygon } of made) expect(polygons.get(id)).toEqual(polygon);
  const sorted = territories.toSorted((a, b) => b.createdAt.localeCompare(a.createdAt) || b.id - a.id);
  expect(territories.map(({ id }) => id)).toEqual(sorted.map(({ id }) => id));
});

test("GET of one prospect returns all its appointments", async () => {
  const { id } = bodyOf(await as.rep("POST", "/api/prospects", {}), 201, Identified);
  // This character needs six bytes in JSON, so 108 appointments are enough for an answer above 6 MB.
  const notes = "\u0001".repeat(10_000);
  // The appointments are in the past, because a prospect's row contains copies of its future appointments and would become too large.
  const startAt = "2020-01-01T00:00:00.000Z";
  const made: number[] = [];
  // The requests are sent one after the other. Concurrent ones would conflict, because each of them writes the row of the same prospect.
  while (made.length < 108) {
    const answer = await as.rep("POST", `/api/prospects/${id}/appointments`, { title: "past", notes, startAt });
    made.push(bodyOf(answer, 201, Identified).id);
  }
  const answer = await as.rep("GET", `/api/prospects/${id}`);
  const Detail = z.looseObject({ appointments: z.array(z.looseObject({ id: z.number(), notes: z.string() })) });
  const { appointments } = bodyOf(answer, 200, Detail);
  expect(Buffer.byteLength(answer.text)).toBeGreaterThan(BUFFERED_BYTES);
  expect(appointments.map((entry) => entry.id)).toEqual(made.toSorted((a, b) => a - b));
  expect(appointments.every((entry) => entry.notes === notes)).toBe(true);
});

test("the list of notes returns all notes", async () => {
  const { id } = bodyOf(await as.rep("POST", "/api/prospects", {}), 201, Identified);
  const body = "\u0001".repeat(10_000);
  const made = await inLanes(112, async () => {
    const answer = await as.rep("POST", `/api/prospects/${id}/notes`, { body });
    return bodyOf(answer, 201, Identified).id;
  });
  const answer = await as.rep("GET", `/api/prospects/${id}/notes`);
  const notes = bodyOf(answer, 200, z.array(z.looseObject({ id: z.number(), body: z.string() })));
  expect(Buffer.byteLength(answer.text)).toBeGreaterThan(BUFFERED_BYTES);
  expect(new Set(notes.map((note) => note.id))).toEqual(new Set(made));
  expect(notes.every((note) => note.body === body)).toBe(true);
});
