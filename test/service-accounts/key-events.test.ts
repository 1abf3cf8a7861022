/** Tests the events and mails about API keys, and that each reminder of the expiry of a key is sent once. */
import { text } from "node:stream/consumers";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { openMail } from "#shared/aws/ses.ts";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import * as limits from "#shared/limits.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { sweepKeyNotices } from "#shared/reference/key-notices.ts";
import { getUser } from "#shared/reference/users.ts";
import { eventsOf } from "#shared/webhooks/events/row-events.ts";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { memoryIdentities } from "../harness/memory-identities.ts";
import * as verbs from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";
import { publish } from "../webhooks/debounce-stage.ts";
import { drain, newPipeline } from "../webhooks/pipeline.ts";
import { expectReconciled } from "../webhooks/stored-deliveries.ts";

const db = faultyDynamoDb("test");
const DAY_MS = 24 * 3_600_000;
const NOW = Date.UTC(2026, 5, 1, 12);

async function scene() {
  const time = { now: NOW };
  const context = contextOn(db.direct, { now: () => time.now });
  const owner = await newOwner(context);
  const account = await verbs.createAccount(context, owner, { name: "Form", role: "admin", permissions: [] });
  const key = keys.keyRing(account.sub);
  let before = await context.table.get(key);
  /** Returns the events since the last call. A repeated stream record must lead to events with the same ids. */
  async function events() {
    const change = { before, after: await context.table.get(key) };
    before = change.after;
    const dictionary = () => loadDictionary(context.table, owner.companyId);
    const made = await eventsOf.keyRing(context.table, change, dictionary);
    const again = await eventsOf.keyRing(context.table, change, dictionary);
    expect(again.map(({ id }) => id)).toEqual(made.map(({ id }) => id));
    expect(new Set(made.map(({ id }) => id)).size).toBe(made.length);
    return made.map(({ event, recordId, data }) => ({ event, recordId, data }));
  }
  async function newKey(name: string, caller = owner, expiresAt?: string) {
    const made = await verbs.createKey(context, caller, account.id, { name, scopes: ["prospects:read"], expiresAt });
    expect(await events()).toEqual([]);
    return made;
  }
  return { time, context, owner, account, events, newKey };
}

test("a revocation, a deleted account and a creator who leaves make one event for each key", async () => {
  const { context, owner, account, events, newKey } = await scene();
  const leaver = await verbs.createUser(context, memoryIdentities(), owner, {
    ...{ email: "l@x.test", firstName: "L", lastName: "L", role: "admin", permissions: [] },
  });
  const caller = { companyId: owner.companyId, userId: leaver.id, role: "admin", permissions: [] } as const;
  const [a, b] = [await newKey("a", caller), await newKey("b", caller)];
  const c = await newKey("c");
  await verbs.updateUser(context, owner, leaver.id, { role: "sales" });
  const serviceAccount = { id: account.id, lastName: "Form", type: "service" };
  expect(await events()).toMatchObject(
    [a, b].map(({ id }) => ({
      event: "api_key.orphaned",
      recordId: account.id,
      data: { serviceAccount, key: { id, orphanedAt: new Date(NOW).toISOString() } },
    })),
  );
  await verbs.updateUser(context, owner, leaver.id, { isActive: false });
  expect(await events(), "a key is orphaned once").toEqual([]);
  await verbs.takeOverKey(context, owner, account.id, a.id);
  await verbs.rotateKey(context, owner, account.id, c.id, { overlapSeconds: 0 });
  expect(await events()).toEqual([]);
  await verbs.revokeKey(context, owner, account.id, b.id);
  const [revoked] = await events();
  expect(revoked).toMatchObject({ event: "api_key.revoked", data: { serviceAccount, key: { id: b.id, name: "b" } } });
  expect(JSON.stringify(revoked)).not.toContain(b.key.slice(13, 40));
  await verbs.deleteAccount(context, owner, account.id);
  const names = (await events()).map(({ event, data }) => [event, data]);
  expect(names, "the rotated key had ended").toMatchObject([
    ["api_key.revoked", { key: { id: a.id } }],
    ["api_key.revoked", { key: { name: "c" } }],
  ]);
});

const Delivered = z.object({
  eventCount: z.int(),
  events: z.array(z.object({ id: z.string(), data: z.object({ key: z.object({ name: z.string() }) }) })),
});

test("a registration with a delay gets each event of a change that revokes several keys exactly once", async () => {
  const at = await newPipeline(db, "api_key.revoked", 10);
  const { companyId } = at;
  const context = contextOn(db.direct, at.context.clock);
  const [userId = 0] = (await loadDictionary(context.table, companyId)).users.keys();
  const owner: Caller = { companyId, userId, role: "owner", permissions: [] };
  const account = await verbs.createAccount(context, owner, { name: "Form", role: "admin", permissions: [] });
  const names = ["a", "b", "c"];
  for (const name of names) {
    await verbs.createKey(context, owner, account.id, { name, scopes: ["prospects:read"] });
  }
  const ring = keys.keyRing(account.sub);
  const before = await context.table.get(ring);
  await verbs.deleteAccount(context, owner, account.id);
  const change = { before, after: await context.table.get(ring) };
  // The stream may repeat a record, immediately or after the delivery was attempted. Each event must then still be in one delivery.
  await publish(at, change, change);
  await drain(at);
  await publish(at, change);
  await drain(at);
  const bodies = at.posts.map(({ body }) => Delivered.parse(JSON.parse(body)));
  expect(bodies.map(({ eventCount, events }) => [eventCount, events.map(({ data }) => data.key.name).sort()])).toEqual([
    [names.length, names],
  ]);
  expect(new Set(bodies.flatMap(({ events }) => events.map(({ id }) => id))).size).toBe(names.length);
  expect(await expectReconciled(at)).toMatchObject({ matched: 1, delivered: 1 });
});

test("the sweeper reminds 14, 3 and 1 days before the expiry, once each, and of the last one after a pause", async () => {
  const { time, context, owner, account, events, newKey } = await scene();
  const { id } = await newKey("a");
  const sweepAt = async (days: number) => {
    time.now = NOW + days * DAY_MS;
    await sweepKeyNotices({ ...context, mail: undefined });
    await sweepKeyNotices({ ...context, mail: undefined });
    return (await events()).map(({ event, data }) => [event, data]);
  };
  const reminder = (daysLeft: number) => [["api_key.expiring", { daysLeft, key: { id } }]];
  expect(await sweepAt(75.9)).toEqual([]);
  expect(await sweepAt(76)).toMatchObject(reminder(14));
  expect(await sweepAt(86.9)).toEqual([]);
  expect(await sweepAt(87)).toMatchObject(reminder(3));
  expect(await sweepAt(89.5)).toMatchObject(reminder(1));
  expect(await sweepAt(91)).toEqual([]);
  expect((await context.table.get(keys.keyRing(account.sub)))?.dueAt).toBeUndefined();

  const short = new Date(time.now + 2 * DAY_MS).toISOString();
  await newKey("b", owner, short);
  expect(await sweepAt(91.5)).toEqual([]);
  expect(await sweepAt(92.9)).toMatchObject([["api_key.expiring", { daysLeft: 1, key: { name: "b" } }]]);

  const { id: other } = await newKey("c");
  expect(await sweepAt(92.9 + 89.5), "after a pause of the sweeper").toMatchObject([
    ["api_key.expiring", { daysLeft: 1, key: { id: other } }],
  ]);
});

const requests: unknown[] = [];
let status = 200;
const ses = await serveOnLoopback(async (request, response) => {
  const call = `${request.method} ${request.url}`;
  requests.push({ call, body: JSON.parse(await text(request)) });
  response.writeHead(status, { "Content-Type": "application/json" }).end("{}");
});
afterAll(() => ses.stop());
process.env.MAIL_FROM = "Acme <no-reply@example.com>";
process.env.SES_IDENTITY = "arn:aws:ses:us-east-1:123456789012:identity/example.com";

describe("a mail", () => {
  beforeEach(() => {
    requests.length = 0;
    status = 200;
  });
  const openTestMail = () =>
    openMail({ endpoint: ses.endpoint, credentials: { accessKeyId: "a", secretAccessKey: "b" } });

  test("goes to the admins and owners once, and again after a failure", async () => {
    const { time, context, owner, account, newKey } = await scene();
    const user = { firstName: "A", lastName: "B", permissions: [] };
    const people = ["admin", "sales"] as const;
    for (const role of people) {
      const { sub } = await verbs.createUser(context, memoryIdentities(), owner, {
        ...user,
        role,
        email: `${role}@x.test`,
      });
      await lookUpCaller(context, sub);
    }
    await verbs.createUser(context, memoryIdentities(), owner, { ...user, role: "admin", email: "invited@x.test" });
    const { id, last4 } = await newKey("Production");
    await verbs.revokeKey(context, owner, account.id, id);
    const mail = openTestMail();
    status = 500;
    await sweepKeyNotices({ ...context, mail });
    status = 200;
    await sweepKeyNotices({ ...context, mail });
    expect(requests, "not at once").toHaveLength(1);
    time.now += 3_600_000;
    for (let i = 0; i < 3; i++) await sweepKeyNotices({ ...context, mail });
    expect(requests).toHaveLength(2);
    const { email } = await getUser(context, owner.companyId, owner.userId);
    expect(requests[1]).toMatchObject({
      call: "POST /v2/email/outbound-emails",
      body: {
        FromEmailAddress: "Acme <no-reply@example.com>",
        FromEmailAddressIdentityArn: "arn:aws:ses:us-east-1:123456789012:identity/example.com",
        Destination: { BccAddresses: [email, "admin@x.test"] },
        Content: { Simple: { Body: { Text: { Data: expect.stringContaining(`(pck_${id}_…${last4}) was revoked`) } } } },
      },
    });
    expect((await context.table.get(keys.keyRing(account.sub)))?.unsent).toEqual([]);
  });

  test(`is sent to a company at most ${limits.keyMailsPerDay} times a day`, async () => {
    const { time, context, owner, account, events, newKey } = await scene();
    const mail = openTestMail();
    const cause = async (): Promise<void> => {
      await events();
      const { id } = await newKey("a");
      await verbs.revokeKey(context, owner, account.id, id);
      await sweepKeyNotices({ ...context, mail });
    };
    for (let i = 0; i <= limits.keyMailsPerDay; i++) await cause();
    expect(requests).toHaveLength(limits.keyMailsPerDay);
    time.now += DAY_MS;
    await sweepKeyNotices({ ...context, mail });
    expect(requests, "the notice has waited for the next day").toHaveLength(limits.keyMailsPerDay + 1);
  });
});
