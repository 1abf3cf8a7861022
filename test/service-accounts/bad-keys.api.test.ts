/** Tests over HTTP that all invalid API keys get the same answer, so that the answer does not reveal why a key is invalid. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { keyIn, newKey as newText } from "#shared/auth/api-key.ts";
import type { NewApiKey } from "../../docs/client/api.ts";
import { newAccount, newKeyOf } from "../harness/api-key.ts";
import { type Answer, at, send } from "../harness/client.ts";
import { dataOf, present, problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const newKey = (id: number, more?: Partial<NewApiKey>) => newKeyOf(as.admin, id, more);
const placed = (id: number, keyId: string) => ({ params: { path: { id, keyId } } });

const other = (character: string | undefined): string => (character === "0" ? "1" : "0");
const replacedAt = (key: string, i: number, by = other(key.at(i))): string => key.slice(0, i) + by + key.slice(i + 1);

const { id: account } = await newAccount(as.admin);
const expiresAt = new Date(Date.now() + 1_000).toISOString();
const expired = await newKey(account, { expiresAt });
const [kept, revoked, replaced] = [await newKey(account), await newKey(account), await newKey(account)];
await as.admin.DELETE("/api/service-accounts/{id}/keys/{keyId}", placed(account, revoked.id));
await as.admin.POST("/api/service-accounts/{id}/keys/{keyId}/rotate", { ...placed(account, replaced.id), body: {} });
const { id: deleted } = await newAccount(as.admin);
const ended = await newKey(deleted);
dataOf(await as.admin.DELETE("/api/service-accounts/{id}", at(deleted)));
while (Date.now() <= Date.parse(expiresAt)) await sleep(100);
const { key } = kept;

/** Invalid texts that have the form of an API key. The authorizer refuses them. */
const formed = {
  unknown: newText("4fK2xQ9a"),
  "with another secret": newText(kept.id),
  "with a changed secret": replacedAt(key, 20),
  "with a changed checksum": replacedAt(key, key.length - 1),
  "with a changed id": replacedAt(key, 11),
  "in lower case": key.toLowerCase() === key ? replacedAt(key, 21) : key.toLowerCase(),
  "with exchanged halves": `${key.slice(0, 13)}${key.slice(32)}${key.slice(13, 32)}`,
  expired: expired.key,
  revoked: revoked.key,
  replaced: replaced.key,
  "of a deleted account": ended.key,
};
/** Texts that do not have the form of an API key. The gateway refuses them and does not call the authorizer. */
const unformed = {
  "in upper case": key.toUpperCase(),
  "too short": key.slice(0, -1),
  "too long": `${key}0`,
  "with =": `${key}=`,
  "with a comma": `${key},`,
  "of another alphabet": replacedAt(key, 20, "-"),
  "with a letter beyond ASCII": replacedAt(key, 20, "%C3%A9"),
  "with another prefix": key.replace("pck_", "sk_live_"),
  "without a prefix": key.slice(4),
  "without its id": `pck_${key.slice(13)}`,
  "two keys": `${key} ${key}`,
  "two keys with a comma": `${key}, Bearer ${key}`,
  "in quotes": `"${key}"`,
  "as base64": Buffer.from(key).toString("base64"),
  "in braces": `{${key}}`,
  "with a zero byte as text": `${key}%00`,
  "the id alone": key.slice(4, 12),
  "after another scheme": `Basic ${key}`,
  "after a scheme of its own": `pck ${key}`,
};

const withoutId = ({ text, headers }: Answer): string => text.replaceAll(present(headers.get("x-request-id")), "id");

/** Returns what a client sees of an answer, except what differs in every answer. */
function shapeOf(answer: Answer): unknown {
  const own = /^(date|x-request-id|server-timing)$/;
  const headers = [...answer.headers].filter(([name]) => !own.test(name)).toSorted();
  return { status: answer.status, headers, body: withoutId(answer) };
}

const ask = (authorization: string): Promise<Answer> =>
  send("GET", "/api/me", { headers: { Authorization: `Bearer ${authorization}` } });

const NO_KEY = 'Bearer error="invalid_token", error_description="unknown, expired or revoked key"';

test.each([
  ["that the authorizer refuses", formed, NO_KEY],
  ["that the gateway refuses", unformed, "Bearer"],
] as const)("all keys %s get 401 with the same body and headers", async (_, keys, challenge) => {
  const [first = expect.fail("no key"), ...others] = Object.entries(keys);
  const answer = await ask(first[1]);
  problemOf(answer, 401, "unauthenticated");
  expect(answer.headers.get("www-authenticate")).toBe(challenge);
  for (const [name, other] of others) expect(shapeOf(await ask(other)), name).toEqual(shapeOf(answer));
});

test("the invalid keys are made from a valid key, and only those that should have the form of a key have it", async () => {
  const isKey = (key: string): boolean => keyIn(`Bearer ${key}`) !== undefined;
  expect(Object.values(formed).map(isKey)).not.toContain(false);
  expect(Object.values(unformed).map(isKey)).not.toContain(true);
  expect((await ask(key)).status).toBe(200);
});
