/** From a committed change to the receiver, with the functions killed at every call they make: lost 0, twice only where a fault forces it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { iso } from "#shared/clock.ts";
import { createCompany } from "#shared/companies/create.ts";
import { DELIVERY_SHARDS, keys } from "#shared/db/keys.ts";
import type { Item, Table } from "#shared/db/table.ts";
import { deliver } from "#shared/deliveries/deliver.ts";
import type { Exchange, Post } from "#shared/deliveries/exchange.ts";
import { type DeliveryMessage, StoredDelivery } from "#shared/deliveries/schema.ts";
import { sweep } from "#shared/deliveries/sweep.ts";
import { batchReads, publishChange, type RowChange } from "#shared/events/publish.ts";
import type { EventWorld } from "#shared/events/world.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import type { Queued } from "#shared/queue.ts";
import { createRegistration } from "#shared/webhooks/registrations.ts";
import { createWebhook, deleteWebhook } from "#shared/webhooks/webhooks.ts";
import { worldOn } from "#shared/world.ts";
import { type FaultyDynamoDb, startFaultyDynamoDb } from "./faulty-dynamodb.ts";

const START = Date.UTC(2026, 5, 1);
/** Six times the deliver function's time-out: when the queue hands a message out again. */
const VISIBILITY_MS = 90_000;

let db: FaultyDynamoDb;
beforeAll(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
  db = await startFaultyDynamoDb();
});
afterAll(() => db.stop());

class Killed extends Error {}

/** The process is killed at its nth call to the outside, before or after the call takes effect. */
interface Kill {
  readonly at: number;
  readonly when: "before" | "after";
}

interface Scene {
  readonly companyId: number;
  readonly webhookId: number;
  readonly change: RowChange;
  readonly world: EventWorld;
  /** Waiting messages with the time they become visible and whether they were handed out before. */
  readonly queue: { message: DeliveryMessage; at: number; isRepeat: boolean }[];
  readonly posts: Post[];
  /** What the calls are that a kill can strike. */
  readonly calls: string[];
  clock: number;
  kill: Kill | undefined;
  answers: (post: Post, number: number) => Partial<Exchange>;
}

let subjects = 0;

/** A company with one registration, and the change of a prospect that it wants to hear of. */
async function scene(event = "prospect.created", delayMinutes = 0): Promise<Scene> {
  const time = { now: () => made.clock };
  const plain = worldOn(db.direct, { now: () => START });
  const sub = `events-${subjects++}`;
  const owner = { email: `${sub}@x.test`, firstName: "A", lastName: "B", sub };
  const { company } = await createCompany(plain, { name: "Acme", owner });
  const webhook = await createWebhook(plain, company.id, { name: "x", url: "http://127.0.0.1:1/", registrations: [] });
  await createRegistration(plain, company.id, webhook.id, {
    event,
    filter: null,
    delayMinutes,
    triggerMode: "automatic",
    manualTriggerButtonText: null,
  });
  const queue: Scene["queue"] = [];
  const posts: Post[] = [];
  const calls: string[] = [];
  const world: EventWorld = {
    table: killable(db.direct),
    clock: time,
    timeScale: 1,
    queue: {
      returnIn: () => Promise.reject(new Error("messages are handed out by the test")),
      send: (entries) => strike("send", async () => enqueue(entries)),
    },
    post: (post) =>
      strike("post", async () => {
        posts.push(post);
        return {
          status: 200,
          error: null,
          answer: "",
          retryAfter: undefined,
          latencyMs: 1,
          ...made.answers(post, posts.length),
        };
      }),
    park: () => Promise.reject(new Error("nothing is to be parked")),
  };
  const made: Scene = {
    companyId: company.id,
    webhookId: webhook.id,
    change: { before: undefined, after: prospectRow(company.id) },
    world,
    queue,
    posts,
    calls,
    clock: START,
    kill: undefined,
    answers: () => ({}),
  };
  return made;

  function enqueue(entries: readonly Queued[]): void {
    for (const { message, delaySeconds } of entries) {
      queue.push({ message, at: made.clock + delaySeconds * 1_000, isRepeat: false });
    }
  }
  async function strike<T>(name: string, call: () => Promise<T>): Promise<T> {
    calls.push(name);
    const { kill } = made;
    const isHit = kill !== undefined && kill.at === calls.length;
    if (isHit && kill.when === "before") throw new Killed();
    const result = await call();
    if (isHit) throw new Killed();
    return result;
  }
  function killable(table: Table): Table {
    return {
      ...table,
      get: (key) => strike("get", () => table.get(key)),
      write: (entry) => strike("write", () => table.write(entry)),
      transact: (writes) => strike("transact", () => table.transact(writes)),
      query: async function* (spec) {
        yield* await strike("query", async () => {
          const items: Item[] = [];
          for await (const item of table.query(spec)) items.push(item);
          return items;
        });
      },
    };
  }
}

function prospectRow(companyId: number): StoredProspect {
  const now = iso(START);
  return {
    type: "prospect",
    id: 4_711,
    companyId,
    name: "Ada",
    phoneNumber: null,
    secondaryPhoneNumber: null,
    emailAddress: null,
    lat: null,
    lng: null,
    address: null,
    statusId: null,
    lastStatusChange: null,
    upcoming: [],
    hasMoreUpcoming: false,
    assignedToUserId: null,
    assignedByUserId: null,
    tagIds: [],
    source: "api",
    sourceId: null,
    sourceCreatedAt: null,
    customFieldData: null,
    createdAt: now,
    updatedAt: now,
    createdBy: 1,
    updatedBy: 1,
    version: 1,
  };
}

const publish = (at: Scene): Promise<void> => publishChange(at.world, batchReads(at.world), at.change);

/** The stream gives a record again until it has been published. */
async function publishUntilDone(at: Scene): Promise<void> {
  for (;;) {
    try {
      return await publish(at);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
    }
  }
}

/** Hands out messages in the order in which they become visible, until none is left. */
async function drain(at: Scene): Promise<void> {
  for (let steps = 0; at.queue.length > 0; steps++) {
    if (steps > 200) throw new Error("the queue does not come to rest");
    at.queue.sort((a, b) => a.at - b.at);
    const next = at.queue.shift();
    if (next === undefined) return;
    at.clock = Math.max(at.clock, next.at);
    try {
      await deliver(at.world, next.message, next.isRepeat);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      at.queue.push({ message: next.message, at: at.clock + VISIBILITY_MS, isRepeat: true });
    }
  }
}

async function deliveries({ companyId, webhookId }: Scene): Promise<StoredDelivery[]> {
  const found: StoredDelivery[] = [];
  const partitions = Array.from(
    { length: DELIVERY_SHARDS },
    (_, shard) => keys.deliveryShard(companyId, webhookId, shard).pk,
  );
  for (const pk of partitions) {
    for await (const item of db.direct.query({ pk })) {
      if (item.type === "delivery") found.push(z.parse(StoredDelivery, item));
    }
  }
  return found;
}

/** Every post is the same delivery in the same bytes. */
function expectSame(posts: readonly Post[]): void {
  expect(new Set(posts.map(({ body }) => body)).size).toBe(1);
  expect(new Set(posts.map(({ headers }) => headers["X-Service-Delivery"])).size).toBe(1);
}

/** How many calls an undisturbed run makes, so that a kill can be put at each. */
async function callsOf(prepare: (at: Scene) => void = () => undefined): Promise<string[]> {
  const at = await scene();
  prepare(at);
  await publish(at);
  await drain(at);
  return at.calls;
}

test("undisturbed: one delivery, one post, nothing left", async () => {
  const at = await scene();
  await publish(at);
  await drain(at);
  expect(at.posts).toHaveLength(1);
  const [delivery, ...more] = await deliveries(at);
  expect(more).toEqual([]);
  expect(delivery).toMatchObject({ state: "delivered", attempt: 1 });
  expect(delivery?.dueShard).toBeUndefined();
});

describe("killed at each call, before and after it takes effect", () => {
  test.each(["before", "after"] as const)(
    "%s: the delivery arrives, again only if its post was cut off",
    async (when) => {
      const calls = await callsOf();
      expect(calls.filter((name) => name === "post")).toHaveLength(1);
      for (let number = 1; number <= calls.length; number++) {
        const at = await scene();
        at.kill = { at: number, when };
        await publishUntilDone(at);
        await drain(at);
        const place = `${when} ${calls[number - 1]} (${number})`;
        const [delivery, ...more] = await deliveries(at);
        expect(more, place).toEqual([]);
        expect(delivery?.state, place).toBe("delivered");
        expectSame(at.posts);
        // What comes between the post and its settling cannot be told from a post that never was.
        const cutOff = number > calls.indexOf("post") || (number === calls.indexOf("post") + 1 && when === "after");
        expect(at.posts.length, place).toBeLessThanOrEqual(cutOff ? 2 : 1);
        expect(at.posts.length, place).toBeGreaterThanOrEqual(1);
      }
    },
  );

  test.each(["before", "after"] as const)(
    "%s: with a receiver that fails twice, three attempts are made and no more",
    async (when) => {
      const failTwice = (at: Scene): void => {
        at.answers = (post) => ({ status: Number(post.headers["X-Service-Attempt"]) < 3 ? 500 : 204 });
      };
      const calls = await callsOf(failTwice);
      for (let number = 1; number <= calls.length; number++) {
        const at = await scene();
        failTwice(at);
        at.kill = { at: number, when };
        await publishUntilDone(at);
        await drain(at);
        const [delivery] = await deliveries(at);
        expect(delivery, `${when} ${number} ${calls[number - 1]}`).toMatchObject({ state: "delivered", attempt: 3 });
        expectSame(at.posts);
        const attempts = new Set(at.posts.map(({ headers }) => headers["X-Service-Attempt"]));
        expect([...attempts]).toEqual(["1", "2", "3"]);
        expect(at.posts.length).toBeLessThanOrEqual(4);
      }
    },
  );
});

describe("repeats and reordering", () => {
  test("a record published three times, its messages handed out four times: one post", async () => {
    const at = await scene();
    for (let i = 0; i < 3; i++) await publish(at);
    at.queue.push(...at.queue.map((entry) => ({ ...entry })));
    await drain(at);
    await publish(at);
    await drain(at);
    expect(at.posts).toHaveLength(1);
    expect(await deliveries(at)).toHaveLength(1);
  });

  test("two senders with the same message at the same time: one post", async () => {
    const at = await scene();
    await publish(at);
    const message = at.queue[0]?.message;
    if (message === undefined) throw new Error("no message");
    await Promise.all(Array.from({ length: 5 }, () => deliver(at.world, message, false)));
    expect(at.posts).toHaveLength(1);
  });

  test("a message of an attempt that is over does nothing", async () => {
    const at = await scene();
    at.answers = (_, number) => ({ status: number === 1 ? 500 : 200 });
    await publish(at);
    const first = at.queue[0]?.message;
    await drain(at);
    if (first === undefined) throw new Error("no message");
    await deliver(at.world, first, true);
    await deliver(at.world, { ...first, attempt: 9 }, true);
    await drain(at);
    expect(at.posts.map(({ headers }) => headers["X-Service-Attempt"])).toEqual(["1", "2"]);
  });
});

describe("time", () => {
  test("a delay longer than the queue's is made of hops; never early", async () => {
    const at = await scene("prospect.created", 100);
    await publish(at);
    await drain(at);
    expect(at.posts).toHaveLength(1);
    expect(at.clock).toBeGreaterThanOrEqual(START + 100 * 60_000);
    expect(at.clock).toBeLessThan(START + 100 * 60_000 + 2_000);
  });

  test("a receiver that never recovers gets ten attempts over three days, then the delivery is exhausted", async () => {
    const at = await scene();
    at.answers = () => ({ status: 500 });
    await publish(at);
    // Hops of a quarter of an hour: every due time is reached by many messages.
    for (let i = 0; i < 5 && at.queue.length > 0; i++) await drain(at).catch(() => undefined);
    expect((await deliveries(at))[0]).toMatchObject({ state: "exhausted", attempt: 10 });
    expect(at.posts).toHaveLength(10);
    const hours = (at.clock - START) / 3_600_000;
    expect(hours).toBeGreaterThan(75.6 * 0.8);
    expect(hours).toBeLessThan(75.6 * 1.2 + 1);
  });

  test("the sweeper finds what is due and has no message, and leaves alone what has", async () => {
    const at = await scene();
    await publish(at);
    at.queue.length = 0;
    expect(await sweep(at.world, { assume: "messages-kept" })).toBe(0);
    at.clock += 60_000;
    expect(await sweep(at.world, { assume: "messages-kept" })).toBe(1);
    expect(await sweep(at.world, { assume: "messages-kept" })).toBe(0);
    await drain(at);
    expect(at.posts).toHaveLength(1);
    expect(await sweep(at.world, { assume: "messages-lost" })).toBe(0);
  });

  test("after the queue was lost everything that waits is queued again, whenever it is due", async () => {
    const at = await scene("prospect.created", 60);
    await publish(at);
    at.queue.length = 0;
    expect(await sweep(at.world, { assume: "messages-lost" })).toBe(1);
    await drain(at);
    expect(at.posts).toHaveLength(1);
    expect(at.clock).toBeGreaterThanOrEqual(START + 3_600_000);
  });
});

test("a sender that died with its message: the next one waits for the lease and then goes on", async () => {
  const at = await scene();
  await publish(at);
  at.kill = { at: at.calls.length + 5, when: "before" };
  const message = at.queue.shift()?.message;
  if (message === undefined) throw new Error("no message");
  await expect(deliver(at.world, message, false)).rejects.toBeInstanceOf(Killed);
  expect(at.calls.at(-1)).toBe("post");
  at.clock += 1_000;
  expect(await sweep(at.world, { assume: "messages-lost" })).toBe(1);
  await drain(at);
  expect(at.posts).toHaveLength(1);
  expect((await deliveries(at))[0]?.state).toBe("delivered");
});

describe("what is gone", () => {
  test("a webhook deleted before the attempt cancels the delivery", async () => {
    const at = await scene();
    await publish(at);
    await deleteWebhook(worldOn(db.direct), at.companyId, at.webhookId);
    await drain(at);
    expect(at.posts).toHaveLength(0);
    expect((await deliveries(at))[0]?.state).toBe("cancelled");
  });

  test("an event that nobody is registered for makes nothing", async () => {
    const at = await scene("prospect.deleted");
    await publish(at);
    expect(at.queue).toEqual([]);
    expect(await deliveries(at)).toEqual([]);
  });
});
