/** What the cases of limit-cases.ts share: a company on a real table, texts of any length, and calls that succeed or are refused. */
import { expect } from "vitest";
import type { ApiContext } from "#shared/context.ts";
import { ApiError } from "#shared/errors.ts";
import * as prospects from "#shared/prospects/write.ts";
import { commanded } from "../harness/commanded.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { keyedPost } from "../harness/proxy-event.ts";
import { newOwner, warmFunction } from "../harness/warm-function.ts";

let started: FaultyDynamoDb | undefined;
/** Starts the table of a test file. Call this function once, at the top of the file. */
export const startTable = (): void => {
  started = faultyDynamoDb();
};
export const db = (): FaultyDynamoDb => started ?? expect.fail("no table");
export const NOW = Date.UTC(2026, 5, 15);
export const DAY_MS = 86_400_000;

export type Accepts = (value: number) => unknown;
/**
 * How a limit is tested. `most`: the service accepts the limit, and refuses one more. `least`: it accepts the limit, and refuses one less.
 * `is`: the function tests the limit itself.
 */
export type Case =
  | { readonly most: Accepts }
  | { readonly least: Accepts }
  | { readonly is: (value: number) => Promise<void> | void };

interface Parser {
  safeParse(value: unknown): { success: boolean };
}
export const parses = (schema: Parser, value: unknown): boolean => schema.safeParse(value).success;
export const letters = (count: number): string => "a".repeat(count);
export const texts = (count: number): string[] => Array.from({ length: count }, (_, i) => `v${i}`);
export const field =
  (schema: Parser, name: string, others: object = {}): Accepts =>
  (count) =>
    parses(schema, { ...others, [name]: letters(count) });

export const visit = { title: "t", startAt: "2026-06-01" };
export const hook = { name: "w", url: "https://a.test/", registrations: [] };
export const registration = {
  event: "e",
  filter: null,
  delayMinutes: 0,
  triggerMode: "manual",
  manualTriggerButtonText: "b",
};
export const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) });
export const point = (_: unknown, i: number): [number, number] => [i / 1_000, (i % 7) / 1_000];
export const standardSecret = (bytes: number): string => `whsec_${Buffer.alloc(bytes, 1).toString("base64")}`;
export const operation = { opId: "0b0b3c1c-0000-4000-8000-000000000000", type: "note.create" };

export async function company(nowMs: number = NOW) {
  const now = { ms: nowMs };
  const context = warmFunction(db(), { now: () => now.ms });
  return { context, now, caller: await newOwner(context) };
}
/** Returns true if the call succeeds, and false if the service refuses it. */
export const succeeds = async (work: () => unknown): Promise<boolean> => {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof ApiError || (error instanceof Error && error.name === "BadFile")) return false;
    throw error;
  }
};
export async function countOf(rows: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _ of rows) count++;
  return count;
}
export async function* piecesOf(...pieces: string[]) {
  yield* pieces;
}

export async function repeatedAfter(ms: number, holdsSecret = false): Promise<boolean> {
  const { context, caller, now } = await company();
  const create = (own: ApiContext) => prospects.createProspect(own, caller, {});
  const send = () => commanded(context, caller, keyedPost("k"), create, { holdsSecret });
  await send();
  now.ms += ms;
  return (await send()).replayed;
}
export const LOCAL = "http://127.0.0.1:1/";
export const silentQueue = { send: async () => undefined, returnIn: async () => undefined };
export const links = {
  download: async () => ({ url: "https://files.test/", expiresAt: "2030-01-01T00:00:00.000Z" }),
  upload: async () => ({ url: "https://files.test/", expiresAt: "2030-01-01T00:00:00.000Z" }),
};
