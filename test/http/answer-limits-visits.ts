/** The requests of service accounts and keys for the test of the largest answers. */
import { expect } from "vitest";
import * as z from "zod/mini";
import * as limits from "#shared/limits.ts";
import type { Answer } from "../harness/client.ts";
import { account as accountBody, key, name } from "./answer-limits-records.ts";
import { counts, type Requests, record } from "./answer-limits-requests.ts";

/** A request, and the check that its answer is complete. */
export interface Visit {
  readonly ask: () => Promise<Answer>;
  readonly whole: (answer: Answer) => void;
}
export const visit = (ask: () => Promise<Answer>, whole: (answer: Answer) => void = record): Visit => ({ ask, whole });
export const has =
  (name: string) =>
  ({ body }: Answer): void =>
    expect(body).toHaveProperty(name);

/**
 * Returns the requests for the routes of service accounts. `account` returns the id of the account that they use. Before the first of these
 * requests, the account has one key less than the maximum.
 */
export function accountVisits(
  { ask, post }: Pick<Requests, "ask" | "post">,
  account: () => number,
): Readonly<Record<string, Visit>> {
  const read = (path: () => string, whole?: (answer: Answer) => void): Visit => visit(() => ask("GET", path()), whole);
  const keys = (): string => `/api/service-accounts/${account()}/keys`;
  const firstKey = async (): Promise<string> => {
    const [first] = z.parse(z.array(z.object({ id: z.string() })), (await ask("GET", keys())).body);
    return `${keys()}/${first?.id}`;
  };
  return {
    "POST /api/service-accounts": visit(() => post("/api/service-accounts", accountBody)),
    "GET /api/service-accounts": read(
      () => "/api/service-accounts",
      counts(() => limits.serviceAccounts),
    ),
    "GET /api/service-accounts/{id}": read(() => `/api/service-accounts/${account()}`),
    "PATCH /api/service-accounts/{id}": visit(() => ask("PATCH", `/api/service-accounts/${account()}`, { name })),
    "POST /api/service-accounts/{id}/keys": visit(() => post(keys(), key), has("key")),
    "GET /api/service-accounts/{id}/keys": read(
      () => keys(),
      counts(() => limits.keysPerAccount),
    ),
    "POST /api/service-accounts/{id}/keys/{keyId}/take-over": visit(
      async () => post(`${await firstKey()}/take-over`),
      has("id"),
    ),
    "POST /api/service-accounts/{id}/keys/{keyId}/rotate": visit(
      async () => post(`${await firstKey()}/rotate`, { overlapSeconds: 60 }),
      has("key"),
    ),
    "DELETE /api/service-accounts/{id}/keys/{keyId}": visit(async () => ask("DELETE", await firstKey()), has("id")),
    "DELETE /api/service-accounts/{id}": visit(() => ask("DELETE", `/api/service-accounts/${account()}`)),
  };
}
