/** Tests that the publisher finds the same matching subscriptions with its cache as without it, and how few rows a batch reads. */
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { iso } from "#shared/clock.ts";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import type { Table } from "#shared/db/table.ts";
import * as limits from "#shared/limits.ts";
import type { DomainEvent } from "#shared/webhooks/catalogue.ts";
import { currentSubscriptions, matchingSubscriptions } from "#shared/webhooks/events/matching.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import { matchesFilter } from "#shared/webhooks/subscriptions/filter-match.ts";
import type { NewRegistration, StoredRegistration } from "#shared/webhooks/subscriptions/schema.ts";
import {
  filterOf,
  readWebhooks,
  registrationsChange,
  registrationsVersionOf,
  registrationWrite,
  storedRegistration,
} from "#shared/webhooks/subscriptions/webhooks.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass, serverError } from "../harness/faulty-dynamodb.ts";
import { sized } from "../harness/tier.ts";
import {
  createRegistration,
  createWebhook,
  deleteRegistration,
  deleteWebhook,
  pauseWebhook,
  resumeWebhook,
  rotateSecret,
  updateRegistration,
  updateWebhook,
} from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";
import { newFanOutPipeline, territoryChange } from "./fan-out-pipeline.ts";
import { allowLoopback, automatic } from "./fixtures.ts";

const db = faultyDynamoDb();
beforeEach(allowLoopback);
const START = Date.UTC(2026, 5, 1);
const url = "http://127.0.0.1:1/";
const input = automatic("prospect.created");

async function setUp() {
  const time = { now: START };
  const context = contextOn(db.direct, { now: () => time.now });
  const { companyId } = await newOwner(context);
  const settle = () => {
    time.now += limits.subscriptionsSettleMs;
  };
  return { companyId, context, time, settle };
}
type Setup = Awaited<ReturnType<typeof setUp>>;

/** A cache belongs to one table object, so a copy of the table simulates a newly started function. */
const warmFunction = (table: Table = db.direct): Table => ({ ...table });

const events = ["prospect.created", "prospect.updated"] as const;
const eventsIn = (companyId: number): DomainEvent[] =>
  events.flatMap((event) =>
    [1, 2].map((value) => {
      const about = { id: "x", event, createdAt: iso(START), companyId, recordId: 1, version: 1 };
      return { ...about, data: { prospect: { value } } };
    }),
  );

const shown = ({ webhookId, id, delayMinutes }: Pick<StoredRegistration, "webhookId" | "id" | "delayMinutes">) =>
  [webhookId, id, delayMinutes].join();

async function found({ companyId, context: { clock } }: Setup, table: Table): Promise<string[][]> {
  const subscriptions = await currentSubscriptions({ table, clock }, companyId);
  return eventsIn(companyId).map((event) => matchingSubscriptions(event, subscriptions).map(shown));
}

/** Returns the matching registrations of each event, computed without the cache. */
async function expected({ companyId }: Setup): Promise<string[][]> {
  const webhooks = await readWebhooks(db.direct, companyId);
  return eventsIn(companyId).map((event) => {
    const byWebhook = webhooks.map(({ registrations }) =>
      registrations
        .filter(({ event: name, triggerMode }) => name === event.event && triggerMode === "automatic")
        .filter((registration) => matchesFilter(filterOf(registration), event.data)),
    );
    const longest = Math.max(0, ...byWebhook.map(({ length }) => length));
    return Array.from({ length: longest }, (_, i) => byWebhook.flatMap((own) => own[i] ?? []))
      .flat()
      .map(shown);
  });
}

const registrationIn = fc.record({
  event: fc.constantFrom<string>(...events),
  filter: fc.constantFrom<NewRegistration["filter"]>(null, { "prospect.value": 1 }, { "prospect.value": [2, 3] }),
  delayMinutes: fc.constantFrom<number>(0, 5),
  triggerMode: fc.constantFrom("automatic" as const, "manual" as const),
  manualTriggerButtonText: fc.constant(null),
});
const nth = fc.nat(20);
const step = fc.oneof(
  fc.record({
    kind: fc.constant("create webhook" as const),
    registrations: fc.array(registrationIn, { maxLength: 3 }),
  }),
  fc.record({ kind: fc.constant("delete webhook" as const), nth }),
  fc.record({ kind: fc.constant("create" as const), nth, registration: registrationIn }),
  fc.record({ kind: fc.constant("update" as const), nth, patch: fc.oneof(registrationIn, fc.constant({})) }),
  fc.record({ kind: fc.constant("delete" as const), nth }),
  fc.record({ kind: fc.constant("rename" as const), nth }),
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
async function execute({ companyId, context }: Setup, what: Step): Promise<void> {
  const webhooks = await readWebhooks(db.direct, companyId);
  if (what.kind === "create webhook") {
    await createWebhook(context, companyId, { name: "x", url, registrations: what.registrations });
  } else if (what.kind === "update" || what.kind === "delete") {
    const all = webhooks.flatMap(({ registrations }) => registrations);
    const one = all[what.nth % Math.max(1, all.length)];
    if (one === undefined) return;
    if (what.kind === "delete") await deleteRegistration(context, companyId, one.webhookId, one.id);
    else await updateRegistration(context, companyId, one.webhookId, one.id, what.patch);
  } else {
    const webhook = webhooks[what.nth % Math.max(1, webhooks.length)]?.webhook;
    if (webhook === undefined) return;
    if (what.kind === "delete webhook") await deleteWebhook(context, companyId, webhook.id);
    else if (what.kind === "rename") await updateWebhook(context, companyId, webhook.id, { name: `x${what.nth}` });
    else await createRegistration(context, companyId, webhook.id, what.registration);
  }
}

const waits = [0, 1_000, limits.subscriptionsSettleMs - 1, limits.subscriptionsSettleMs, 6_000, 61_000];
const waitMs = fc.constantFrom(...waits);
/** Generates two bits, one for each of the two functions. A function publishes a batch if its bit is set. */
const publishing = fc.nat(3);

const eachStep: readonly Step[] = [
  { kind: "create", nth: 0, registration: input },
  { kind: "update", nth: 0, patch: { ...input, filter: { "prospect.value": [2, 3] } } },
  { kind: "update", nth: 1, patch: { ...input, triggerMode: "manual" } },
  { kind: "rename", nth: 0 },
  { kind: "delete", nth: 0 },
  { kind: "create webhook", registrations: [input] },
  { kind: "delete webhook", nth: 0 },
];
/** Every combination of a wait and a kind of write, between batches of both functions. */
const everyStep = waits.flatMap((ms) => eachStep.map((what): [number, number, Step, number] => [ms, 3, what, 3]));

test("two warm functions find the subscriptions of an uncached read after any sequence of writes and batches", {
  tags: "sized",
}, async () => {
  const sequences = fc.array(fc.tuple(waitMs, publishing, step, publishing), { minLength: 5, maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(fc.array(registrationIn, { maxLength: 4 }), sequences, async (registrations, sequence) => {
      const on = await setUp();
      const functions = [warmFunction(), warmFunction()];
      const expectFound = async (chosen: number) => {
        for (const [i, table] of functions.entries()) {
          if ((chosen & (1 << i)) !== 0) expect(await found(on, table)).toEqual(await expected(on));
        }
      };
      await createWebhook(on.context, on.companyId, { name: "x", url, registrations });
      for (const [ms, before, what, after] of sequence) {
        on.time.now += ms;
        await expectFound(before);
        await execute(on, what);
        await expectFound(after);
      }
      await expectFound(3);
    }),
    { numRuns: sized({ short: 6, wide: 400 }), examples: [[[input], everyStep]] },
  );
});

describe("a batch reads", () => {
  test("one row of one unit for a company with 2 000 cached registrations", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 40, each: 50 });
    at.clock += limits.subscriptionsSettleMs;
    const context = { ...at.context, table: warmFunction() };
    const read = async () => {
      const reads = batchReads(context);
      const { usage, result } = await metered(async () => {
        await reads.subscriptions(at.companyId);
        return reads.subscriptions(at.companyId);
      });
      expect(result.get("territory.updated")?.flat()).toHaveLength(2_000);
      return usage;
    };
    expect((await read()).readUnits).toBeGreaterThan(50);
    expect(await read()).toMatchObject({ requests: 1, readUnits: 1 });
  });

  test("one unit for a company without webhooks", async () => {
    const on = await setUp();
    const table = warmFunction();
    for (let batch = 0; batch < 3; batch++) {
      const { usage } = await metered(() => found(on, table));
      expect(usage).toMatchObject({ requests: 1, readUnits: 1 });
    }
  });

  test("the names of a company's users, statuses and tags only for events that need them, so not for a territory", async () => {
    const at = await newFanOutPipeline(db, { webhooks: 1, each: 1 });
    const context = { ...at.context, table: warmFunction() };
    const reads = batchReads(context);
    let dictionaries = 0;
    const dictionary = (companyId: number) => {
      dictionaries++;
      return reads.dictionary(companyId);
    };
    await publishChanges(context, { ...reads, dictionary }, [territoryChange(at.companyId, 2)]);
    expect(dictionaries).toBe(0);
    await publishChanges(context, { ...reads, dictionary }, [at.change]);
    expect(dictionaries).toBe(1);
  });
});

describe("a warm function finds", () => {
  async function cached() {
    const on = await setUp();
    const { id: webhookId } = await createWebhook(on.context, on.companyId, { name: "x", url, registrations: [input] });
    on.settle();
    const table = warmFunction(db.table);
    expect(await found(on, table)).toEqual(await expected(on));
    return { ...on, webhookId, table };
  }

  test.each(["late", "early"] as const)("a registration created during its read (%s)", async (kind) => {
    const on = await cached();
    const create = () => createRegistration(on.context, on.companyId, on.webhookId, input);
    await create();
    on.settle();
    let queries = 0;
    db.plan((operation) => {
      if (operation !== "Query" || queries++ > 0) return pass;
      return { kind, meanwhile: create };
    });
    const during = await found(on, on.table);
    expect(during[0]).toHaveLength(kind === "late" ? 2 : 3);
    db.plan(() => pass);
    expect((await found(on, on.table))[0]).toHaveLength(3);
  });

  test("a registration created between two pages of its read", async () => {
    const on = await cached();
    const before = await createRegistration(on.context, on.companyId, on.webhookId, input);
    on.settle();
    let queries = 0;
    db.plan((operation) => {
      if (operation !== "Query") return pass;
      queries++;
      const change = (body: Record<string, unknown>) => ({ ...body, Limit: 1 });
      const meanwhile = () =>
        queries === 2 ? deleteRegistration(on.context, on.companyId, on.webhookId, before.id) : Promise.resolve();
      return { kind: "late", change, meanwhile };
    });
    await found(on, on.table);
    db.plan(() => pass);
    expect(queries).toBeGreaterThan(3);
    expect(await found(on, on.table)).toEqual(await expected(on));
  });

  test("a registration whose row became visible after its new version, although one transaction wrote both", async () => {
    const on = await cached();
    const { companyId, webhookId } = on;
    // A reader may see a part of a transaction, because DynamoDB does not isolate a Query from it. Two separate writes simulate this.
    await db.direct.write(registrationsChange(companyId, on.time.now));
    expect((await found(on, on.table))[0]).toHaveLength(1);
    const stored = storedRegistration(companyId, webhookId, await on.context.ids.next(), input, iso(on.time.now));
    await db.direct.transact([registrationWrite(stored)]);
    expect((await found(on, on.table))[0]).toHaveLength(2);
  });

  test("after at most a minute, a registration that became visible long after its new version", async () => {
    const on = await cached();
    const { companyId, webhookId } = on;
    const stored = storedRegistration(companyId, webhookId, await on.context.ids.next(), input, iso(on.time.now));
    await db.direct.transact([registrationWrite(stored)]);
    on.time.now += limits.subscriptionsCacheMs - 1;
    expect((await found(on, on.table))[0]).toHaveLength(1);
    on.time.now += 1;
    expect((await found(on, on.table))[0]).toHaveLength(2);
  });

  test.each(["GetItem", "Query", "second page of a Query"])(
    "all registrations after a failed %s, which is not cached",
    async (failing) => {
      const on = await cached();
      for (let i = 0; i < 3; i++) await createRegistration(on.context, on.companyId, on.webhookId, input);
      on.settle();
      let queries = 0;
      db.plan((operation) => {
        const isFirstPage = operation === "Query" && failing !== operation && queries++ === 0;
        if (isFirstPage) return { kind: "ask", change: (body) => ({ ...body, Limit: 3 }) };
        return failing.endsWith(operation) ? serverError : pass;
      });
      await expect(found(on, on.table)).rejects.toThrow();
      db.plan(() => pass);
      expect(await found(on, on.table)).toEqual(await expected(on));
      expect((await found(on, on.table))[0]).toHaveLength(4);
    },
  );
});

test("no other write of a webhook makes functions read the registrations again", async () => {
  const { companyId, context, time } = await setUp();
  const { id, registrations } = await createWebhook(context, companyId, { name: "x", url, registrations: [input] });
  const version = async () => registrationsVersionOf(await db.direct.get(keys.webhookCount(companyId)));
  const before = await version();
  expect(before).toEqual({ number: 1, changedAt: time.now });
  time.now += 1_000;
  await updateRegistration(context, companyId, id, registrations[0]?.id ?? 0, { delayMinutes: 0 });
  const missing = { code: "not_found" };
  await expect(updateRegistration(context, companyId, id, 1, { delayMinutes: 1 })).rejects.toMatchObject(missing);
  await expect(deleteRegistration(context, companyId, id, 1)).rejects.toMatchObject(missing);
  await updateWebhook(context, companyId, id, { name: "y" });
  await rotateSecret(context, companyId, id, {});
  await pauseWebhook(context, companyId, id);
  await resumeWebhook(context, { send: async () => undefined, returnIn: async () => undefined }, companyId, id);
  expect(await version()).toEqual(before);
});

test("the cache contains neither secrets nor addresses of receivers", async () => {
  const on = await setUp();
  const webhook = { name: "hook", url, secretKey: "x".repeat(32), registrations: [input] };
  await createWebhook(on.context, on.companyId, webhook);
  const subscriptions = await currentSubscriptions({ table: warmFunction(), clock: on.context.clock }, on.companyId);
  const [subscription] = subscriptions.get(input.event)?.flat() ?? [];
  const names = ["companyId", "delayMinutes", "filter", "id", "webhookId"];
  expect(Object.keys(subscription ?? {}).toSorted()).toEqual(names);
});
