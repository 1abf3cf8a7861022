/** Sends requests as one user, creates records with them, and checks the number of records in answers. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import * as z from "zod/mini";
import * as limits from "#shared/limits.ts";
import { type Answer, type Client, json } from "../harness/client.ts";
import { Identified } from "../harness/shapes.ts";

export type Requests = ReturnType<typeof requestsOf>;

export function requestsOf(client: Client) {
  const ask = (method: string, path: string, body?: object, key?: string): Promise<Answer> =>
    client.send(method, path, {
      headers: { ...(!(body instanceof FormData) && json), ...(key !== undefined && { "Idempotency-Key": key }) },
      ...(body !== undefined && { body: body instanceof FormData ? body : JSON.stringify(body) }),
    });

  /**
   * Sends the request twice with the same idempotency key, and expects equal answers. The service reads the second answer from a row of the
   * table. Equal answers therefore show that the answer fits into a row.
   */
  async function post(path: string, body: object = {}): Promise<Answer> {
    const key = randomUUID();
    const first = await ask("POST", path, body, key);
    const again = await ask("POST", path, body, key);
    expect([again.status, again.headers.get("idempotency-replayed")], again.text.slice(0, 300)).toEqual([
      first.status,
      "true",
    ]);
    expect(again.text).toBe(first.text);
    return first;
  }

  async function made(path: string, body: object): Promise<number> {
    const answer = await ask("POST", path, body);
    expect(answer.status, answer.text.slice(0, 300)).toBeLessThan(300);
    return z.parse(Identified, answer.body).id;
  }

  /**
   * Creates a bulk job with the maximum number of ids, and returns its id. No prospect has one of these ids. The job takes some seconds, so
   * that later requests find it running.
   */
  const newJob = (): Promise<number> => {
    const ids = Array.from({ length: limits.bulkIds }, (_, i) => 2 ** 50 + i);
    return made("/api/prospects/bulk", { ids, action: { set: { currentStatusId: null } } });
  };

  return { ask, post, made, newJob };
}

const listOf = (answer: Answer): readonly unknown[] => z.parse(z.array(z.unknown()), answer.body);
export const itemsOf = (answer: Answer): readonly unknown[] =>
  z.parse(z.object({ items: z.array(z.unknown()) }), answer.body).items;
export const record = (answer: Answer): void => {
  z.parse(z.looseObject({ id: z.number() }), answer.body);
};

export const counts = (count: () => number) => (answer: Answer) => expect(listOf(answer)).toHaveLength(count());
export const atLeast = (count: number) => (answer: Answer) =>
  expect(listOf(answer).length).toBeGreaterThanOrEqual(count);
