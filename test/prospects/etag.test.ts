/** Tests ETags: a 304 is given only if a fresh answer would equal the client's copy, by every function instance and after any writes. */

import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import { type ApiContext, contextOn } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { ApiError } from "#shared/errors.ts";
import { ANSWER_FORMAT, fingerprint, NotModified, type Validator, validatorOf } from "#shared/http/etag.ts";
import { ProspectDetail } from "#shared/prospects/detail.ts";
import { ProspectFilter } from "#shared/prospects/filter.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import { indexRecords } from "#shared/prospects/index/records.ts";
import { verifyIndex } from "#shared/prospects/index/verify.ts";
import { ListQuery, listProspects, ProspectPage } from "#shared/prospects/list/list.ts";
import { MultisetDigest } from "#shared/prospects/list/multiset-digest.ts";
import { MapPin, mapPins } from "#shared/prospects/list/pins.ts";
import { readProspect } from "#shared/prospects/read.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { readAllProspects } from "../harness/index-oracle.ts";
import { sized } from "../harness/tier.ts";
import * as verbs from "../harness/verbs.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";
import { CompanyModel } from "../sync/company-model.ts";
import { CompanyWrites, isWrite, writeWeights } from "../sync/company-writes.ts";

const db = faultyDynamoDb();
const clock = { ms: Date.parse("2030-01-01T00:00:00.000Z"), now: () => clock.ms };
const newFunction = (): ApiContext => warmFunction(db, clock);

const MINUTE_MS = 60_000;

/** The random numbers of a step. They choose the write and its values, the reader, the request (`question`), and how much time passes. */
const Step = fc.record({
  write: fc.nat(99),
  seed: fc.nat(999),
  reader: fc.nat(999),
  question: fc.nat(999),
  minutes: fc.constantFrom(0, 0, 0, 1, 2, 30),
});

const of = <T>(list: readonly T[], seed: number): T => list[seed % list.length] ?? expect.fail("the list is empty");
const kinds = [...Object.keys(writeWeights).filter(isWrite), "flush" as const];

/** Creates a company with three prospects. Its `write` makes a write, or a flush, which `kind` and `seed` choose. */
async function newRandomCompany(context: ApiContext) {
  const { caller: owner, repId } = await newCompany(context);
  const model = new CompanyModel();
  const writes = new CompanyWrites(context, owner, [repId], model);
  for (const value of ["Open", "Closed"]) {
    model.statuses.set((await verbs.createStatus(context, owner.companyId, { value })).id, { isActive: true });
  }
  for (let i = 0; i < 3; i++) await writes.create(i, i);
  const rep: Caller = { ...owner, userId: repId, role: "sales" };
  const callers = [owner, rep, { ...rep, permissions: ["canViewAllProspects" as const] }];
  const write = async (kind: number, seed: number): Promise<void> => {
    writes.release();
    const name = of(kinds, kind);
    if (name === "flush") await flush(context, owner.companyId, { least: 1, settleMs: 0 });
    else await writes.make(name, seed, Math.floor(seed / 7), true);
  };
  return { owner, callers, write, prospectIds: () => [...model.prospects.keys()] };
}

type Question =
  | { readonly kind: "list"; readonly query: Readonly<Record<string, string>> }
  | { readonly kind: "pins"; readonly query: Readonly<Record<string, string>> }
  | { readonly kind: "detail"; readonly id: number };

interface Answer {
  readonly status: 200 | 304 | 404;
  readonly etag?: string | undefined;
  readonly body?: unknown;
}

/** Returns the answer of the endpoint to a request with these ETags in the header If-None-Match. */
async function ask(
  context: ApiContext,
  caller: Caller,
  question: Question,
  tags: readonly string[] = [],
): Promise<Answer> {
  let etag: string | undefined;
  const headers = new Map(tags.length === 0 ? [] : [["if-none-match", [tags.join(", ")]]]);
  const validator = validatorOf({ headers }, (tag) => {
    etag = tag;
  });
  try {
    const result = await bodyOf(context, caller, question, validator);
    return result instanceof NotModified ? { status: 304, etag: result.etag } : { status: 200, etag, body: result };
  } catch (error) {
    if (error instanceof ApiError && error.code === "not_found") return { status: 404 };
    throw error;
  }
}

async function bodyOf(context: ApiContext, caller: Caller, question: Question, validator: Validator): Promise<unknown> {
  if (question.kind === "detail") {
    const detail = await readProspect(context, caller, question.id, validator);
    return detail instanceof NotModified ? detail : ProspectDetail.parse(detail);
  }
  if (question.kind === "list") {
    const page = await listProspects(context, caller, ListQuery.parse(question.query), validator);
    return page instanceof NotModified ? page : ProspectPage.parse(page);
  }
  const pieces = await mapPins(context, caller, ProspectFilter.parse(question.query), validator);
  if (pieces instanceof NotModified) return pieces;
  const text = Array.from(pieces, (piece) => Buffer.from(piece).toString()).join("");
  // The pins have no defined order, so they are sorted before the comparison.
  return z
    .array(MapPin)
    .parse(JSON.parse(text))
    .sort((a, b) => a.id - b.id);
}

interface Copy extends Answer {
  readonly etag: string;
}

test("a 304 is never given if the answer differs from the client's copy", { tags: ["sized"] }, async () => {
  const counts = { asked: 0, unchanged: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(Step, { minLength: 25, maxLength: 40 }), async (steps) => {
      const functions = [newFunction(), newFunction(), newFunction()];
      const [one, two] = [await newRandomCompany(newFunction()), await newRandomCompany(newFunction())];
      const callers = [...one.callers, ...two.callers];
      const copies: Copy[] = [];
      for (const { write, seed, reader, question, minutes } of steps) {
        // A third of the steps write nothing, so that some of the clients' copies are still current.
        if (write % 3 > 0) await (seed % 4 === 0 ? two : one).write(write, seed);
        clock.ms += minutes * MINUTE_MS;
        const caller = of(callers, reader);
        const questions = questionsOf([...one.prospectIds(), ...two.prospectIds()]);
        const asked = of(questions, question);
        const context = of(functions, seed);
        // Clients may send any ETag, also that of an answer to another question, caller or company.
        const etags = copies.map(({ etag }) => etag);
        const answer = await ask(context, caller, asked, etags);
        const fresh = await ask(newFunction(), caller, asked);
        counts.asked++;
        if (answer.status === 304) {
          counts.unchanged++;
          const copy = copies.find(({ etag }) => etag === answer.etag);
          expect({ status: 200, body: copy?.body }).toEqual({ status: fresh.status, body: fresh.body });
        } else {
          expect([answer.status, answer.body]).toEqual([fresh.status, fresh.body]);
          if (answer.etag !== undefined) copies.push({ ...answer, etag: answer.etag });
        }
        // One function lists the same company again and again, so it has outdated rows in memory. It must answer like a new function.
        const who = of(one.callers, question);
        const listed = of(lists, reader);
        expect((await ask(of(functions, 0), who, listed)).body).toEqual((await ask(newFunction(), who, listed)).body);
      }
      await expectChangedSince(one.owner);
    }),
    { numRuns: sized({ short: 3, wide: 100 }), seed: 55, endOnFailure: true },
  );
  // At least a tenth of the answers must be 304. Otherwise the test would hardly check them.
  expect(counts.unchanged / counts.asked).toBeGreaterThan(0.1);
});

/** Expects that the filter by the time of the last change finds what a comparison with all rows finds, and that the index is sound. */
async function expectChangedSince(owner: Caller): Promise<void> {
  const reader = newFunction();
  const { prospects } = await readAllProspects(db.direct, owner.companyId);
  const times = prospects.map(({ updatedAt }) => Date.parse(updatedAt));
  for (const time of new Set(times.flatMap((one) => [one, one + 1]))) {
    const updatedSince = new Date(time).toISOString();
    const expected = prospects.filter(({ updatedAt }) => Date.parse(updatedAt) >= time).map(({ id }) => id);
    const query = ListQuery.parse({ updatedSince, pageSize: "500" });
    const { items, total } = await listProspects(reader, owner, query);
    expect(items.map(({ id }) => id).sort((a, b) => a - b)).toEqual(expected.sort((a, b) => a - b));
    expect(total).toBe(expected.length);
    // A prospect without coordinates is in no box.
    const filter = ProspectFilter.parse({ updatedSince, bbox: "-106,38,-104,41" });
    const onMap = prospects.filter(({ id, lat }) => lat !== null && expected.includes(id));
    expect((await findFiltered(reader, owner, filter)).matches.total).toBe(onMap.length);
  }
  expect((await verifyIndex(db.direct, indexRecords(db.direct), owner.companyId)).faults).toEqual([]);
}

const lists = [{}, { status: "open" }, { pageSize: "2" }, { pageSize: "2", page: "2" }, { search: "1" }].map(
  (query) => ({ kind: "list" as const, query }),
);
const questionsOf = (ids: readonly number[]): Question[] => [
  ...lists,
  ...[{}, { status: "open" }, { bbox: "-106,39,-104,40" }].map((query) => ({ kind: "pins" as const, query })),
  ...ids.slice(0, 4).map((id) => ({ kind: "detail" as const, id })),
];

test("a 304 costs one round and two read units for a list and a prospect, and one for pins", async () => {
  const context = newFunction();
  const { caller } = await newCompany(context);
  const { id } = await verbs.createProspect(context, caller, { name: "a", lat: 1, lng: 2 });
  clock.ms += 2 * MINUTE_MS;
  for (const [question, most] of [
    [{ kind: "list", query: {} }, 1],
    [{ kind: "pins", query: {} }, 1],
    [{ kind: "detail", id }, 2],
  ] satisfies [Question, number][]) {
    const { etag = "" } = await ask(context, caller, question);
    const { result, usage } = await metered(() => ask(context, caller, question, [etag]));
    expect([question.kind, result.status, usage.readUnits, usage.rounds]).toEqual([question.kind, 304, most, 1]);
  }
});

test("a 304 ends for pins when a prospect moves, changes its status or leaves, and when a status changes its colour", async () => {
  const context = newFunction();
  const { caller } = await newCompany(context);
  const { id: currentStatusId } = await verbs.createStatus(context, caller.companyId, { value: "Far" });
  const { id } = await verbs.createProspect(context, caller, { name: "a", lat: 1, lng: 2 });
  const question = { kind: "pins", query: {} } as const;
  const tagged = async () => (await ask(newFunction(), caller, question)).etag ?? "";
  for (const change of [
    () => verbs.updateProspect(context, caller, id, { currentStatusId }),
    () => verbs.updateProspect(context, caller, id, { lat: 3 }),
    () => verbs.updateStatus(context, caller.companyId, currentStatusId, { color: "#010203" }),
    () => verbs.deleteProspect(context, caller, id),
  ]) {
    const tag = await tagged();
    expect((await ask(newFunction(), caller, question, [tag])).status).toBe(304);
    await change();
    expect((await ask(newFunction(), caller, question, [tag])).status).toBe(200);
  }
});

test("a 304 ends when an appointment of the list has begun", async () => {
  const context = newFunction();
  const { caller } = await newCompany(context);
  const { id } = await verbs.createProspect(context, caller, { name: "a" });
  const startAt = new Date(clock.ms + MINUTE_MS).toISOString();
  await verbs.createAppointment(context, caller, id, { title: "roof", startAt });
  const question = { kind: "list", query: {} } as const;
  const { etag = "" } = await ask(context, caller, question);
  clock.ms += MINUTE_MS;
  expect((await ask(context, caller, question, [etag])).status).toBe(304);
  clock.ms += 1;
  expect((await ask(context, caller, question, [etag])).status).toBe(200);
});

test("a 304 is not given for `*`, because the service does not know the client's copy", async () => {
  const context = newFunction();
  const { caller } = await newCompany(context);
  const validator = validatorOf({ headers: new Map([["if-none-match", ["*"]]]) }, () => undefined);
  expect(await listProspects(context, caller, ListQuery.parse({}), validator)).toMatchObject({ total: 0 });
});

test("a tag is not valid for a table that was restored from a backup", () => {
  vi.stubEnv("TABLE_NAME", "Canvassing");
  const before = fingerprint("list", 1, 2);
  expect(fingerprint("list", 1, 2)).toBe(before);
  vi.stubEnv("TABLE_NAME", "Canvassing-restored");
  expect(fingerprint("list", 1, 2)).not.toBe(before);
  vi.unstubAllEnvs();
});

test("the tag of a prospect gets no 304 if a note was written while the prospect's rows were read", async () => {
  const context = newFunction();
  const { caller } = await newCompany(context);
  const { id } = await verbs.createProspect(context, caller, { name: "a" });
  clock.ms += 2 * MINUTE_MS;
  const proxied = contextOn(db.table, clock);
  const question = { kind: "detail", id } as const;
  await ask(proxied, caller, question);
  // The reads of the notes and of the prospect's row run at the same time. The test controls their order: first the notes are read, then
  // another request writes a note, and then the row is read.
  const notesAreRead = Promise.withResolvers<void>();
  const noteIsWritten = notesAreRead.promise.then(() => verbs.createNote(context, caller, id, { body: "late" }));
  db.plan((operation, _, body) => {
    if (operation === "GetItem") return { kind: "early", meanwhile: () => noteIsWritten };
    const isOfNotes = operation === "Query" && body.ScanIndexForward === false;
    return isOfNotes ? { kind: "late", meanwhile: async () => notesAreRead.resolve() } : pass;
  });
  const answer = await ask(proxied, caller, question);
  expect(z.object({ notes: z.array(z.unknown()) }).parse(answer.body).notes).toEqual([]);
  db.plan(() => pass);
  const next = await ask(proxied, caller, question, [answer.etag ?? ""]);
  expect(next.body).toMatchObject({ notes: [{ body: "late" }] });
  expect(next.etag).not.toBe(answer.etag);
  expect((await ask(proxied, caller, question, [next.etag ?? ""])).status).toBe(304);
});

test("the digest of pins depends on every pair, but not on their order", () => {
  const digestOf = (pairs: readonly (readonly [number, number])[]): string => {
    const digest = new MultisetDigest();
    for (const [a, b] of pairs) digest.add(a, b);
    return digest.sums.join();
  };
  const most = Number.MAX_SAFE_INTEGER;
  const Pairs = fc.uniqueArray(fc.tuple(fc.nat(most), fc.nat(most)), { minLength: 1, selector: String });
  fc.assert(
    fc.property(Pairs, fc.nat(), fc.nat(1), (pairs, at, side) => {
      expect(digestOf(pairs.toReversed())).toBe(digestOf(pairs));
      const changed = pairs.map(([a, b], i) => {
        if (i !== at % pairs.length) return [a, b] as const;
        return side === 0 ? ([(a + 1) % most, b] as const) : ([a, (b + 1) % most] as const);
      });
      expect(digestOf(changed)).not.toBe(digestOf(pairs));
    }),
  );
});

/**
 * The hash changes if a field is added to a list, a single prospect or a map pin. The developer must then increase ANSWER_FORMAT in
 * shared/http/etag.ts, and change the hash here. Otherwise clients would keep the answers of the earlier release.
 */
test("the answers have the format that their tags name", () => {
  const schemas = [ProspectPage, ProspectDetail, MapPin].map((schema) =>
    z.toJSONSchema(schema, { io: "output", unrepresentable: "any" }),
  );
  const hash = createHash("sha256").update(JSON.stringify(schemas)).digest("base64url").slice(0, 12);
  expect({ ANSWER_FORMAT, hash }).toEqual({ ANSWER_FORMAT: 1, hash: "iyPwK9myOcaA" });
});
