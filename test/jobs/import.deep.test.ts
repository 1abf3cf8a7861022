/** Tests kills of an import within one request. No row is visible before the retry of the request, and each row exists once after it. */
import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { openLinks } from "#shared/aws/links.ts";
import { isBlank } from "#shared/blank.ts";
import { flush } from "#shared/company-index/write/flush.ts";
import * as keys from "#shared/db/keys.ts";
import { BucketUnavailable } from "#shared/errors.ts";
import { once } from "#shared/http/idempotency.ts";
import type { RequestContext } from "#shared/jobs/import/import.ts";
import * as files from "#shared/jobs/import/import.ts";
import { readImport } from "#shared/jobs/import/requests.ts";
import * as limits from "#shared/limits.ts";
import { getNote } from "#shared/prospects/notes.ts";
import { readProspect } from "#shared/prospects/read.ts";
import { loadDictionary } from "#shared/reference/dictionary.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { deaths, killedAt, killPointsOf } from "../harness/kills.ts";
import { keyedPost } from "../harness/proxy-event.ts";
import { sized } from "../harness/tier.ts";
import { createNote, createProspect, importFile, updateProspect } from "../harness/verbs.ts";
import { type Company, newCompany } from "../harness/warm-function.ts";
import { jobTests } from "./faulty-jobs.ts";
import { exportedText, fileOf, importChecks } from "./import-checks.ts";

const { db, now, harness } = jobTests();
const { list, expectDifferent, expectOnce, expectNothing, left } = importChecks(db, harness);

const posted = (context: RequestContext, caller: Caller, bytes: Buffer) =>
  once(context, caller, keyedPost("k", "the digest of the file"), {}, (commit) =>
    files.importFile(context, caller, bytes, {}, commit),
  );

describe("killed", () => {
  const COUNT = 30;
  test.each(deaths)(
    "%s any call of the table takes effect, an import shows no row before the retry and each row once after it",
    { tags: "sized" },
    async (when, death) => {
      const counting = await newCompany(harness.sound());
      db.plan(() => pass);
      await posted(harness.faulty(), counting.caller, fileOf(COUNT));
      const all = db.calls.length;
      expect(all).toBeGreaterThan(12);
      for (const last of killPointsOf(all, when === "before" ? 0 : 1)) {
        const company = await newCompany(harness.sound());
        db.plan(killedAt(last, death));
        const answer = await posted(harness.faulty(), company.caller, fileOf(COUNT)).catch(() => undefined);
        db.plan(() => pass);
        const before = (await list(harness.sound(), company)).total;
        if (before === 0) await expectNothingSeen(company);
        else expect(before, `killed at call ${last}`).toBe(COUNT);
        if (answer === undefined) {
          now.ms += limits.idempotentRunMs + 1;
          await posted(harness.sound(), company.caller, fileOf(COUNT));
        }
        await expectOnce(company, COUNT);
        // The retry deletes the rows of the killed import. The company must then have as many rows as a company whose import was not killed
        // (`counting`).
        expect((await left(company)).length, `killed at call ${last}`).toBe((await left(counting)).length);
      }
    },
  );

  async function expectNothingSeen(company: Company): Promise<void> {
    await expectNothing(company);
    const context = harness.sound();
    const { companyId } = company.caller;
    const prospects = (await db.keysOf(`C#${companyId}#P#`)).filter(({ sk }) => sk.startsWith("P#"));
    for (const { sk } of prospects.slice(0, 2)) {
      const id = Number(sk.slice(2));
      await expect(readProspect(context, company.caller, id)).rejects.toThrow("no such prospect");
      await expect(updateProspect(context, company.caller, id, { name: "x" })).rejects.toThrow("no such prospect");
      await expect(createNote(context, company.caller, id, { body: "x" })).rejects.toThrow("no such prospect");
    }
    const notes = (await db.keysOf(`C#${companyId}#P#`)).filter(({ sk }) => sk.startsWith("N#"));
    for (const { sk } of notes.slice(0, 1)) {
      const id = Number(sk.split("#").at(-1));
      await expect(getNote(context, company.caller, id)).rejects.toThrow("no such note");
    }
  }

  test("by a fault of the bucket, an import has written nothing", async () => {
    const company = await newCompany(harness.sound());
    harness.bucket.plan = () => "before";
    await expect(importFile(harness.sound(), company.caller, fileOf(3))).rejects.toThrow(BucketUnavailable);
    expect(await left(company)).toEqual([]);
  });

  test("by another import of the company after the end of its lease, an import does not complete later", async () => {
    const company = await newCompany(harness.sound());
    let later: Promise<unknown> | undefined;
    db.plan((operation) => {
      if (operation !== "BatchWriteItem" || later !== undefined) return pass;
      later = Promise.resolve();
      const meanwhile = async () => {
        now.ms += limits.idempotentRunMs + 1;
        await importFile(harness.sound(), company.caller, fileOf(5, 0, "other"));
      };
      return { kind: "late", meanwhile };
    });
    await expect(importFile(harness.faulty(), company.caller, fileOf(5))).rejects.toThrow();
    db.plan(() => pass);
    expect(await expectDifferent(company, 5)).toEqual([0, 1, 2, 3, 4].map((i) => `other${i}`));
  });
});

test("other writes and flushes during an import lose nothing, and the bucket keeps the file", async () => {
  const company = await newCompany(harness.sound());
  const { companyId } = company.caller;
  const others = harness.sound();
  let writes = 0;
  db.plan((operation) => {
    if (operation !== "BatchWriteItem" || writes >= 8) return pass;
    const mine = ++writes;
    return {
      kind: "late",
      meanwhile: async () => {
        const address = { address1: "1", city: "2", state: "3", zip: "4" };
        await createProspect(others, company.caller, { name: `other ${mine}`, address });
        await flush(others, companyId, { least: 1, settleMs: 0 });
        expect((await list(harness.sound(), company, "imported")).total).toBe(0);
      },
    };
  });
  const { id: imported } = await importFile(harness.faulty(), company.caller, fileOf(200, 0, "imported"));
  const id = imported ?? 0;
  db.plan(() => pass);
  expect(writes).toBeGreaterThan(1);
  await expectDifferent(company, 200 + writes);
  const stored = await readImport(harness.sound(), openLinks(), company.caller, id);
  expect(stored).toMatchObject({ state: "completed", imported: 200 });
  const kept = Buffer.from(harness.bucket.files.get(`imports/${companyId}/${id}.csv`) ?? []);
  expect(kept).toEqual(fileOf(200, 0, "imported"));
});

/** Returns the rows of a CSV file without the columns id, author and time, which an import ignores. */
function contentOf(text: string): Record<string, string>[] {
  const rows: Record<string, string>[] = parse(text, { columns: true, record_delimiter: "\r\n" });
  return rows.map(({ id: _, createdBy: __, createdAt: ___, ...row }) => row);
}

/** Copies the users of one company to another company, so that both know the user names in the file. */
async function copyNames(from: Company, to: Company): Promise<void> {
  const names = await Array.fromAsync(db.direct.query(keys.reference(from.caller.companyId)));
  const users = names.filter(({ type }) => type === "user");
  const { pk } = keys.reference(to.caller.companyId);
  await db.direct.batchPut(users.map((user) => ({ ...user, pk, sk: String(user.sk) })));
}

test("an export imported into an empty company has the same content and order", { tags: "sized" }, async () => {
  const texts = [
    ...["", "=1+1", "+1 (303) 555", "-5", "@x", "\tx", "\r=x", "'=x", "''=x", '"', 'a"b', "a,b", "a;b", "a\r\nb"],
    ...["\uFEFFx", "👩‍👩‍👧", "\u0000", " a "],
  ];
  const awkward = (max: number) =>
    fc
      .oneof(
        fc.constantFrom(...texts),
        fc.string({ unit: fc.constantFrom(..."=+-@'\t\r\n\",; ab0é👍"), maxLength: max }),
      )
      // The API stores no blank text, so the generated prospects contain none.
      .map((text) => (isBlank(text) ? "" : text));
  const line = awkward(20).map((text) => text || "-");
  const prospect = fc.record({
    name: awkward(30),
    phoneNumber: awkward(20),
    emailAddress: fc.constantFrom(null, "a.b+c@example.com"),
    lat: fc.constantFrom(0, -5, 39.7392, -89.99999999),
    lng: fc.double({ min: -180, max: 180, noNaN: true }).map((degrees) => (Math.abs(degrees) < 1e-9 ? -1e-9 : degrees)),
    address: fc.option(fc.record({ address1: line, address2: awkward(10), city: line, state: line, zip: line })),
    source: awkward(20),
    isAssigned: fc.boolean(),
    status: fc.nat(3),
    note: fc.oneof(awkward(200), fc.constant("x\n".repeat(5_000))),
  });
  const holds = async (prospects: (typeof prospect extends fc.Arbitrary<infer T> ? T : never)[]): Promise<void> => {
    const context = harness.sound();
    const [one, two] = [await newCompany(context), await newCompany(context)];
    await copyNames(one, two);
    const { statuses } = await loadDictionary(context.table, one.caller.companyId);
    for (const { isAssigned, status, note, ...input } of prospects) {
      const currentStatusId = [...statuses.keys()][status] ?? null;
      const assignedToUserId = isAssigned ? one.repId : null;
      const { id } = await createProspect(context, one.caller, { ...input, currentStatusId, assignedToUserId });
      if (note !== "") await createNote(context, one.caller, id, { body: note });
      now.ms++;
    }
    const text = await exportedText(harness.sound(), one.caller);
    const result = await importFile(harness.sound(), two.caller, Buffer.from(text));
    expect(result).toMatchObject({ imported: prospects.length, skipped: 0, errors: [] });
    expect(contentOf(await exportedText(harness.sound(), two.caller))).toEqual(contentOf(text));
  };
  await fc.assert(fc.asyncProperty(fc.array(prospect, { minLength: 1, maxLength: 6 }), holds), {
    numRuns: sized({ short: 5, wide: 60 }),
  });
});
