/** Tests that a prospect is found by a field (`matchBy`) or created: against a model, concurrently, after kills, and if it is hidden. */
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { systemClock } from "#shared/clock.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { ApiError } from "#shared/errors.ts";
import * as limits from "#shared/limits.ts";
import { findClientRecords } from "#shared/prospects/client-records.ts";
import type { NewProspect } from "#shared/prospects/input.ts";
import { isFound } from "#shared/prospects/list/find-or-make.ts";
import { listProspects } from "#shared/prospects/list/list.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { sized } from "../harness/tier.ts";
import * as verbs from "../harness/verbs.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
const context = (): ApiContext => warmFunction(db, systemClock);
const all = { page: 1, pageSize: 100 };

async function newTeam() {
  const { caller: owner, repId } = await newCompany(context());
  const rep: Caller = { ...owner, userId: repId, role: "sales" };
  return { owner, rep, everyone: [owner, rep] as const };
}

const keysOf = {
  sourceId: (text: string): NewProspect => ({ sourceId: text }),
  emailAddress: (text: string): NewProspect => ({ emailAddress: `${text}@x.test` }),
};
type By = keyof typeof keysOf;

interface Outcome {
  readonly kind: "made" | "found" | "several";
  readonly ids: readonly number[];
}

async function outcome(work: Promise<{ readonly id: number }>): Promise<Outcome> {
  try {
    const answer = await work;
    return { kind: isFound(answer) ? "found" : "made", ids: [answer.id] };
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "conflict") throw error;
    return { kind: "several", ids: error.members.ids ?? [] };
  }
}

interface Modelled {
  readonly id: number;
  readonly sourceId: string | null;
  readonly emailAddress: string | null;
  readonly name: string | null;
  readonly assignee: number | null;
}

const step = fc.record({
  kind: fc.constantFrom("find", "find", "find", "create", "delete", "assign", "rename", "note"),
  who: fc.constantFrom(0, 1),
  by: fc.constantFrom<By>("sourceId", "emailAddress"),
  key: fc.constantFrom("a", "A", "aa", " a"),
  onMatch: fc.constantFrom("skip", "update", undefined),
  target: fc.nat({ max: 5 }),
});

test("a call finds exactly what a filter over all visible prospects finds", { tags: "sized" }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), async (steps) => {
      const { owner, rep } = await newTeam();
      const here = context();
      let model: Modelled[] = [];
      const modelled = (prospect: Awaited<ReturnType<typeof verbs.createProspect>>): Modelled => ({
        ...prospect,
        assignee: prospect.assignedTo?.id ?? null,
      });
      const normal = (by: By, text: string | null) => (by === "sourceId" ? text?.trim() : text?.trim().toLowerCase());
      for (const [i, { kind, who, by, key, onMatch, target }] of steps.entries()) {
        const caller = who === 0 ? owner : rep;
        const fields = { ...keysOf[by](by === "emailAddress" ? key.trim() : key), name: `n${i}` };
        const chosen = model[target];
        if (kind === "create") model.push(modelled(await verbs.createProspect(here, caller, fields)));
        if (chosen !== undefined && kind === "delete") {
          await verbs.deleteProspect(here, owner, chosen.id);
          model = model.filter((one) => one !== chosen);
        }
        if (chosen !== undefined && (kind === "assign" || kind === "rename")) {
          const assignedToUserId = who === 0 ? null : rep.userId;
          const patch = kind === "assign" ? { assignedToUserId } : fields;
          const changed = modelled(await verbs.updateProspect(here, owner, chosen.id, patch));
          model = model.map((one) => (one === chosen ? changed : one));
        }
        if (chosen !== undefined && kind === "note")
          await verbs.createNote(here, owner, chosen.id, { body: "a@x.test aa" });
        if (kind !== "find") continue;
        const wanted = normal(by, fields[by] ?? null);
        const visible = model.filter(({ assignee }) => who === 0 || assignee === rep.userId);
        const matches = visible.filter((one) => normal(by, one[by]) === wanted);
        const { answer, ...got } = await outcomeOf(verbs.findOrMake(here, caller, { matchBy: by, onMatch }, fields));
        if (matches.length > 1) {
          expect(got).toEqual({ kind: "several", ids: matches.map(({ id }) => id).sort((a, b) => b - a) });
          continue;
        }
        expect(got.kind).toBe(matches.length === 1 ? "found" : "made");
        if (answer === undefined) throw new Error("no prospect");
        expect(answer.name).toBe(matches[0] === undefined || onMatch === "update" ? `n${i}` : matches[0].name);
        if (matches[0] !== undefined) expect(answer.id).toBe(matches[0].id);
        model = [...model.filter(({ id }) => id !== answer.id), modelled(answer)];
      }
      const { items } = await listProspects(here, owner, all);
      expect(new Set(items.map(({ id }) => id))).toEqual(new Set(model.map(({ id }) => id)));
    }),
    { numRuns: sized({ short: 8, wide: 100 }) },
  );
});

async function outcomeOf(work: ReturnType<typeof verbs.findOrMake>) {
  const done = await outcome(work);
  return { ...done, answer: done.kind === "several" ? undefined : await work };
}

test.each(["sourceId", "emailAddress", "clientRecordId"] as const)(
  "of twenty concurrent calls with one %s, one creates the prospect and the others find it",
  async (matchBy) => {
    const { owner, rep } = await newTeam();
    const body = { sourceId: "s-1", emailAddress: "a@x.test", clientRecordId: randomUUID() };
    const calls = Array.from({ length: 20 }, () =>
      outcome(verbs.findOrMake(context(), owner, { matchBy }, { [matchBy]: body[matchBy] })),
    );
    const done = await Promise.all(calls);
    expect(new Set(done.map(({ ids }) => ids.join())).size).toBe(1);
    expect(done.filter(({ kind }) => kind === "made")).toHaveLength(1);
    expect(done.filter(({ kind }) => kind === "found")).toHaveLength(19);
    if (matchBy === "clientRecordId") return;
    const others = Array.from({ length: 20 }, (_, i) =>
      outcome(verbs.findOrMake(context(), i % 2 === 0 ? owner : rep, { matchBy }, { [matchBy]: `b${body[matchBy]}` })),
    );
    // The owner sees the prospect of the representative too. If the owner and the representative have each made one, the owner gets a
    // conflict that names both. There are therefore at most two ids.
    const ids = new Set((await Promise.all(others)).flatMap((one) => one.ids));
    expect(ids.size).toBeLessThanOrEqual(2);
  },
);

test.each(["sourceId", "clientRecordId"] as const)(
  "a call by %s that is killed at any request, and then repeated beside another one, leaves one prospect",
  async (matchBy) => {
    for (let kill = 1; ; kill++) {
      const { owner } = await newTeam();
      const body = { [matchBy]: randomUUID() };
      const begun = Promise.withResolvers<boolean>();
      db.plan((_, number) => {
        if (number === kill) begun.resolve(true);
        return number >= kill ? { kind: "hang" } : pass;
      });
      const faulty = contextOn(db.table);
      const work = verbs.findOrMake(faulty, owner, { matchBy }, body).then(() => false);
      const isKilled = await Promise.race([work, begun.promise]);
      db.plan(() => pass);
      const [one, two] = await Promise.all([0, 1].map(() => verbs.findOrMake(context(), owner, { matchBy }, body)));
      expect(one?.id).toBe(two?.id);
      expect((await listProspects(context(), owner, all)).total).toBe(1);
      if (!isKilled) {
        expect(kill).toBeGreaterThan(3);
        return;
      }
    }
  },
);

test.each(["sourceId", "emailAddress"] as const)(
  "a %s of a prospect that the caller does not see has the same answer and costs the same units as an unknown one",
  async (matchBy) => {
    const { owner, rep } = await newTeam();
    const value = {
      unseen: { sourceId: "s-1", emailAddress: "a1@x.test" },
      unknown: { sourceId: "s-2", emailAddress: "a2@x.test" },
    };
    await verbs.findOrMake(context(), owner, { matchBy }, { [matchBy]: value.unseen[matchBy] });
    const here = context();
    await verbs.findOrMake(here, rep, { matchBy }, { [matchBy]: "warm@x.test" });
    const costs = await Promise.all(
      [value.unknown, value.unseen].map(async (key) => {
        const { result, usage } = await metered(() =>
          verbs.findOrMake(here, rep, { matchBy }, { [matchBy]: key[matchBy] }),
        );
        return { isFound: isFound(result), assignee: result.assignedTo?.id, ...usage };
      }),
    );
    expect(costs[0]).toEqual(costs[1]);
  },
);

test("a conflict names at most twenty prospects, the newest first", async () => {
  const { owner } = await newTeam();
  const here = context();
  const ids: number[] = [];
  for (let i = 0; i <= limits.conflictingIds; i++)
    ids.push((await verbs.createProspect(here, owner, { sourceId: "s" })).id);
  const { ids: named } = await outcome(verbs.findOrMake(here, owner, { matchBy: "sourceId" }, { sourceId: "s" }));
  expect(named).toEqual(ids.toReversed().slice(0, limits.conflictingIds));
});

const disturbances = {
  deleted: (owner: Caller, id: number) => verbs.deleteProspect(context(), owner, id),
  changed: (owner: Caller, id: number) => verbs.updateProspect(context(), owner, id, { sourceId: "t" }),
};

test.each(
  (["deleted", "changed"] as const).flatMap((kind) =>
    (["skip", "update"] as const).map((onMatch) => ({ kind, onMatch })),
  ),
)("a prospect that is $kind after the search is not found, with onMatch=$onMatch", async ({ kind, onMatch }) => {
  const { owner } = await newTeam();
  const { id } = await verbs.createProspect(context(), owner, { sourceId: "s", name: "A" });
  let reads = 0;
  db.plan((operation) =>
    // The first GetItem reads the claim (a row for the source id), and the second one the found prospect. The disturbance is in between.
    operation === "GetItem" && ++reads === 2 ? { kind: "early", meanwhile: () => disturbances[kind](owner, id) } : pass,
  );
  const how = { matchBy: "sourceId", onMatch } as const;
  const made = await verbs.findOrMake(contextOn(db.table), owner, how, { sourceId: "s", name: "B" });
  expect(reads).toBeGreaterThan(1);
  expect([isFound(made), made.id === id]).toEqual([false, false]);
  const { items } = await listProspects(context(), owner, all);
  expect(items.map(({ name, sourceId }) => ({ name, sourceId }))).toEqual([
    { name: "B", sourceId: "s" },
    ...(kind === "changed" ? [{ name: "A", sourceId: "t" }] : []),
  ]);
});

test("a prospect whose claim is visible before the index shows it is found", async () => {
  const { owner } = await newTeam();
  const { id } = await verbs.findOrMake(context(), owner, { matchBy: "sourceId" }, { sourceId: "s" });
  let searches = 0;
  // The first search finds no unflushed entries, as if the claim (a row for the source id) were visible before the index entry.
  db.plan((operation, _, body) =>
    operation === "Query" && JSON.stringify(body).includes(`C#${owner.companyId}#X"`) && ++searches === 1
      ? {
          kind: "ask",
          change: (body) => ({ ...body, ExpressionAttributeValues: nothing(body.ExpressionAttributeValues) }),
        }
      : pass,
  );
  const again = await verbs.findOrMake(contextOn(db.table), owner, { matchBy: "sourceId" }, { sourceId: "s" });
  expect(again.id).toBe(id);
});

/** Replaces the `ExpressionAttributeValues` of a Query, so that it reads a partition that does not exist and finds nothing. */
const nothing = (values: unknown): object =>
  Object.fromEntries(Object.keys(Object(values)).map((name, i) => [name, { S: i === 0 ? "nowhere" : "" }]));

test("concurrent calls with a key and a client id find the one prospect", async () => {
  const { owner } = await newTeam();
  const body = { sourceId: "s", clientRecordId: randomUUID() };
  const calls = Array.from({ length: 10 }, () => verbs.findOrMake(context(), owner, { matchBy: "sourceId" }, body));
  expect(new Set((await Promise.all(calls)).map(({ id }) => id)).size).toBe(1);
});

test("a call by client id reads the names again if another function has changed them", async () => {
  const { owner } = await newTeam();
  const here = contextOn(db.table);
  const { id: currentStatusId } = await verbs.createStatus(context(), owner.companyId, { value: "S" });
  await verbs.createProspect(here, owner, { currentStatusId });
  await verbs.updateStatus(context(), owner.companyId, currentStatusId, { color: "#123456" });
  db.plan(() => pass);
  const body = { clientRecordId: randomUUID(), currentStatusId };
  expect(isFound(await verbs.findOrMake(here, owner, { matchBy: "clientRecordId" }, body))).toBe(false);
  expect(db.calls.filter((operation) => operation === "TransactWriteItems").length).toBeLessThanOrEqual(2);
});

test("an address in a note of more than a hundred prospects is no match", async () => {
  const { owner } = await newTeam();
  const here = context();
  const { id } = await verbs.createProspect(here, owner, { emailAddress: "a@x.test" });
  for (let i = 0; i < 101; i++) {
    const other = await verbs.createProspect(here, owner, {});
    await verbs.createNote(here, owner, other.id, { body: "a@x.test" });
  }
  expect((await verbs.findOrMake(here, owner, { matchBy: "emailAddress" }, { emailAddress: "A@x.test" })).id).toBe(id);
});

test("a user who sees only assigned prospects cannot give a prospect to somebody else by a key", async () => {
  const { owner, rep } = await newTeam();
  const body = { sourceId: "s", assignedToUserId: owner.userId };
  await expect(verbs.findOrMake(context(), rep, { matchBy: "sourceId" }, body)).rejects.toMatchObject({
    faults: [{ pointer: "/assignedToUserId" }],
  });
});

test("a call whose transaction is committed before it is killed has made the one prospect", async () => {
  const { owner } = await newTeam();
  db.plan((operation) =>
    operation === "TransactWriteItems" ? { kind: "late", meanwhile: () => new Promise(() => undefined) } : pass,
  );
  void verbs.findOrMake(contextOn(db.table), owner, { matchBy: "sourceId" }, { sourceId: "s" });
  await expect.poll(async () => (await listProspects(context(), owner, all)).total).toBe(1);
  db.plan(() => pass);
  expect(isFound(await verbs.findOrMake(context(), owner, { matchBy: "sourceId" }, { sourceId: "s" }))).toBe(true);
});

test("a look-up of client ids reads each row once, with strong consistency", async () => {
  const { owner } = await newTeam();
  const here = context();
  const ids = [randomUUID(), randomUUID().toUpperCase()];
  const made: (readonly [string, number])[] = [];
  for (const clientRecordId of ids) {
    made.push([clientRecordId.toLowerCase(), (await verbs.createProspect(here, owner, { clientRecordId })).id]);
  }
  const asked = new Set([...ids.map((id) => id.toLowerCase()), randomUUID()]);
  const { result, usage } = await metered(() => findClientRecords(here, owner, asked));
  expect([result, usage.readUnits]).toEqual([new Map(made), asked.size]);
});
