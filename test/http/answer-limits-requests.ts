/** Sends requests as one user, and creates records with them. */
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
   * Sends the request twice with the same idempotency key. The service reads the second answer from a row of the table, so equal answers
   * show that the answer fits into a row.
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

  /** Creates a bulk job with the maximum number of ids. No prospect has one of them. The job runs for some seconds. Returns its id. */
  const newJob = (): Promise<number> => {
    const ids = Array.from({ length: limits.bulkIds }, (_, i) => 2 ** 50 + i);
    return made("/api/prospects/bulk", { ids, action: { set: { currentStatusId: null } } });
  };

  return { ask, post, made, newJob };
}
