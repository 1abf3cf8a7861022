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

export const letters = (count: number): string => "a".repeat(count);
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
export async function repeatedAfter(ms: number, holdsSecret = false): Promise<boolean> {
  const { context, caller, now } = await company();
  const create = (own: ApiContext) => prospects.createProspect(own, caller, {});
  const send = () => commanded(context, caller, keyedPost("k"), create, { holdsSecret });
  await send();
  now.ms += ms;
  return (await send()).replayed;
}
export const LOCAL = "http://127.0.0.1:1/";
export const links = {
  download: async () => ({ url: "https://files.test/", expiresAt: "2030-01-01T00:00:00.000Z" }),
  upload: async () => ({ url: "https://files.test/", expiresAt: "2030-01-01T00:00:00.000Z" }),
};
