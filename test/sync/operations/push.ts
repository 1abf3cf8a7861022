/** Sends batches of operations over HTTP, and reads their results. */
import { randomUUID } from "node:crypto";
import * as z from "zod/mini";
import type { Answer, Client } from "../../harness/client.ts";
import { bodyOf } from "../../harness/shapes.ts";

const Results = z.object({
  results: z.array(
    z.object({
      opId: z.string(),
      outcome: z.string(),
      id: z.nullable(z.number()),
      version: z.nullable(z.number()),
      record: z.optional(z.record(z.string(), z.unknown())),
      problem: z.optional(z.object({ code: z.string(), errors: z.array(z.looseObject({ pointer: z.string() })) })),
    }),
  ),
});

export const push = (client: Client, operations: readonly object[]): Promise<Answer> =>
  client("POST", "/api/sync/operations", { deviceId: "tablet", operations });

export const results = async (client: Client, operations: readonly object[]) =>
  bodyOf(await push(client, operations), 200, Results).results;

export const outcomes = async (client: Client, operations: readonly object[]) =>
  (await results(client, operations)).map(({ outcome }) => outcome);

export const operation = <T extends object>(type: string, rest: T) => ({ opId: randomUUID(), type, ...rest });

export const create = (fields: object = {}, clientRecordId: string = randomUUID()) =>
  operation("prospect.create", { clientRecordId, fields });

/** Sends the operations until each of them is applied. Returns the number of requests. */
export async function pushAll(client: Client, operations: readonly object[]): Promise<number> {
  let last = "";
  for (let requests = 1; requests < 100; requests++) {
    const answer = await push(client, operations);
    last = `${answer.status} ${answer.text}`;
    // After status 429 or 5xx, the device sends all operations again. An operation that was applied nevertheless then gets the outcome
    // `duplicate`.
    if (answer.status === 429 || answer.status >= 500) continue;
    const done = bodyOf(answer, 200, Results).results.map(({ outcome }) => outcome);
    const isDone = done.every((outcome) => outcome === "applied" || outcome === "duplicate");
    if (isDone) return requests;
    const failed = done.find((outcome) => !["applied", "duplicate", "retry"].includes(outcome));
    if (failed !== undefined) throw new Error(`an operation is ${failed}`);
  }
  throw new Error(`some operations were not applied after a hundred requests. The last answer: ${last}`);
}
