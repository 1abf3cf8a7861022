/** Tests the undo of imports: which prospects it hides after changes by users and after kills, and which rights it needs. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import type { JobMessage } from "#shared/aws/sqs.ts";
import { cancelJob, pauseJob } from "#shared/jobs/bulk/control.ts";
import { membersOf } from "#shared/jobs/bulk/files.ts";
import type { StoredBulk } from "#shared/jobs/bulk/stored.ts";
import { csvText } from "#shared/prospects/csv/write.ts";
import { listNotes } from "#shared/prospects/notes.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { checkIndex, readAllProspects } from "../harness/index-oracle.ts";
import { killedAt, killPointsOf } from "../harness/kills.ts";
import { sized } from "../harness/tier.ts";
import * as verbs from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import * as bulk from "./bulk-stage.ts";
import { jobDeaths, jobTests } from "./faulty-jobs.ts";

const { db, now, harness } = jobTests();

const COUNT = bulk.SMALL_CHUNK + 2;

/** Rows 1 and 2 of the file are equal, rows 3 and 4 are equal, and so on. Only every second pair has a note. */
const file = Buffer.from(
  csvText([
    ["name", "lat", "lng", "notes"],
    ...Array.from({ length: COUNT }, (_, i) => [`n${i >> 1}`, "39.7", "-104", i % 4 < 2 ? "from the file" : ""]),
  ]),
);

interface Imported extends bulk.Stage {
  readonly importId: number;
}

/** Imports the file. With `by`, the rep makes the import with these rights. Without it, the owner makes the import. */
async function newImport(by?: Omit<Caller, "companyId" | "userId">): Promise<Imported> {
  const context = harness.sound();
  const company = await newCompany(context);
  const { companyId } = company.caller;
  const maker = by === undefined ? company.caller : { ...by, companyId, userId: company.repId };
  if (by !== undefined)
    await verbs.updateUser(context, company.caller, company.repId, { permissions: [...by.permissions] });
  const tag = await verbs.createTag(context, companyId, { value: "hail", color: "#DC2626" });
  const { statuses } = await freshDictionary(context, companyId);
  const message = await harness.uploaded(maker, file);
  await harness.run(context, message);
  const { prospects } = await readAllProspects(context.table, companyId);
  const ids = prospects.map(({ id }) => id).toSorted((a, b) => a - b);
  expect(ids).toHaveLength(COUNT);
  return { ...company, ids, statusIds: [...statuses.keys()], tagId: tag.id, importId: message.id };
}

const messageOf = ({ companyId }: Caller, id: number): JobMessage => ({ kind: "bulk", companyId, id });

async function begun({ caller, importId }: Imported, by: Caller = caller): Promise<JobMessage> {
  return messageOf(caller, (await verbs.beginImportUndo(harness.sound(), bulk.silent, by, importId, {})).id);
}

/** Creates an undo whose chunks have four records. */
async function begunInChunks({ caller, ids: [firstId = 0], importId }: Imported): Promise<JobMessage> {
  const context = harness.sound();
  const id = await context.ids.next();
  const names = await freshDictionary(context, caller.companyId);
  const job = { id, kind: "import_undo" as const, events: "summary" as const, total: COUNT, chunks: 2 };
  await verbs.startJob(context, caller, names, { ...job, undoes: importId, firstId });
  return messageOf(caller, id);
}

/** Executes the undo until it ends. By default, its chunks have the usual size. */
const untilEnded = (stage: Imported, job: JobMessage, members = membersOf): Promise<StoredBulk> =>
  bulk.endOf(harness, now, stage, job, { members });

async function noteOf(caller: Caller, id: number): Promise<number> {
  const context = harness.sound();
  for await (const note of listNotes(context, caller, id)) return note.id;
  return (await verbs.createNote(context, caller, id, { body: "first" })).id;
}

const changes: Record<string, (stage: Imported, id: number) => Promise<unknown>> = {
  name: ({ caller }, id) => verbs.updateProspect(harness.sound(), caller, id, { name: "renamed" }),
  status: ({ caller, statusIds }, id) =>
    verbs.updateProspect(harness.sound(), caller, id, { currentStatusId: statusIds[0] }),
  assignee: ({ caller, repId }, id) => verbs.updateProspect(harness.sound(), caller, id, { assignedToUserId: repId }),
  tags: ({ caller, tagId }, id) => verbs.setTags(harness.sound(), caller, id, { tagIds: [tagId] }),
  note: ({ caller }, id) => verbs.createNote(harness.sound(), caller, id, { body: "called" }),
  editedNote: async ({ caller }, id) =>
    verbs.updateNote(harness.sound(), caller, await noteOf(caller, id), { body: "called twice" }),
  deletedNote: async ({ caller }, id) => verbs.deleteNote(harness.sound(), caller, await noteOf(caller, id)),
  appointment: ({ caller }, id) =>
    verbs.createAppointment(harness.sound(), caller, id, { title: "Visit", startAt: "2030-02-01T00:00:00.000Z" }),
  bulkJob: async (stage, id) => {
    const own = { ...stage, ids: [id] };
    const job = await bulk.newJob(harness, own, { statusId: stage.statusIds[1] ?? null });
    return bulk.runOnce(harness.sound(), own, job);
  },
  deletion: ({ caller }, id) => verbs.deleteProspect(harness.sound(), caller, id),
};

test("the undo of an import hides exactly what nobody has changed since", { tags: "sized" }, async () => {
  const record = fc.option(fc.constantFrom(...Object.entries(changes)), { nil: undefined, freq: 3 });
  const law = fc.asyncProperty(fc.array(record, { minLength: COUNT, maxLength: COUNT }), async (chosen) => {
    const stage = await newImport();
    for (const [i, one] of chosen.entries()) await one?.[1](stage, stage.ids[i] ?? 0);
    const before = await bulk.rowsOf(harness, stage);
    const outcomes = chosen.map((one) =>
      one === undefined ? "changed" : one[0] === "deletion" ? "not_found" : "changed_since",
    );
    const hidden = outcomes.filter((outcome) => outcome === "changed").length;

    const undo = await begun(stage);
    const counts = { total: COUNT, changed: hidden, skipped: COUNT - hidden, unchanged: 0, failed: 0 };
    expect(await untilEnded(stage, undo)).toMatchObject({ state: "completed", ...counts });
    const results = await bulk.resultsOf(harness, undo);
    expect(results.map(({ id, outcome, code }) => [id, code ?? outcome])).toEqual(
      stage.ids.map((id, i) => [id, outcomes[i]]),
    );
    const after = await bulk.rowsOf(harness, stage);
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome === "changed") expect(after[i]?.deletedAt).toBeDefined();
      else expect(after[i]).toEqual(before[i]);
    }
    expect(await checkIndex(harness.sound().table, undo.companyId)).toEqual([]);
    const again = await untilEnded(stage, await begun(stage));
    expect(again).toMatchObject({ state: "completed", changed: 0, skipped: COUNT });
    expect(await bulk.rowsOf(harness, stage)).toEqual(after);
    const ofUndo = verbs.beginUndo(harness.sound(), bulk.silent, stage.caller, undo.id, {});
    await expect(ofUndo).rejects.toThrow("cannot be undone");
  });
  await fc.assert(law, { numRuns: sized({ short: 3, wide: 150 }) });
});

test("an import is not undone again while an undo of it waits, runs or is paused", async () => {
  const stage = await newImport();
  const other = await harness.uploaded(stage.caller, file);
  await harness.run(harness.sound(), other);
  const first = await begun(stage);
  const refused = { code: "conflict", location: `/api/jobs/${first.id}` };
  await expect(begun(stage)).rejects.toMatchObject(refused);
  await expect(begun(stage)).rejects.toThrow(`The job ${first.id} already undoes this import and has not ended.`);
  const last = await begun({ ...stage, importId: other.id });
  await pauseJob(harness.sound(), bulk.silent, stage.caller, first.id);
  await expect(begun(stage)).rejects.toMatchObject(refused);
  await cancelJob(harness.sound(), bulk.silent, stage.caller, first.id);
  expect(await untilEnded(stage, last)).toMatchObject({ state: "completed", changed: COUNT });
  expect(await untilEnded(stage, await begun(stage))).toMatchObject({ state: "completed", changed: COUNT });
});

let turn = 0;

test.each(jobDeaths)(
  "an undo of an import that is killed %s any call of the %s takes effect hides each prospect once, and keeps what users change meanwhile",
  { tags: "sized" },
  async (...death) => {
    const counted = await newImport();
    const first = await begunInChunks(counted);
    const calls = await harness.killed(death, async () => {
      expect(await bulk.runOnce(harness.faulty(), counted, first)).toBe(true);
    });
    expect(calls).toBeGreaterThan(death[1] === "table" ? 15 : 1);
    for (const last of killPointsOf(calls, turn++)) {
      const stage = await newImport();
      const undo = await begunInChunks(stage);
      await harness.killed(death, () => bulk.runOnce(harness.faulty(), stage, undo), last);
      expect(bulk.unprocessed(await bulk.storedJob(harness, undo))).toBeGreaterThanOrEqual(0);
      // A user tries to change the last prospect. This fails if the killed undo has already hidden that prospect.
      const id = stage.ids.at(-1) ?? 0;
      const note = await verbs.createNote(harness.sound(), stage.caller, id, { body: "called" }).catch(() => undefined);
      const hidden = note === undefined ? COUNT : COUNT - 1;
      const ended = await untilEnded(stage, undo, bulk.smallChunks(stage.ids));
      expect(ended, `killed at call ${last}`).toMatchObject({ state: "completed", changed: hidden });
      const rows = await bulk.rowsOf(harness, stage);
      expect(rows.map(({ version }) => version)).toEqual(rows.map((row) => (row.deletedAt === undefined ? 1 : 2)));
      expect(rows.filter(({ deletedAt }) => deletedAt !== undefined)).toHaveLength(hidden);
      expect((await bulk.resultsOf(harness, undo)).map((result) => result.id)).toEqual(stage.ids);
    }
  },
);

test("a restricted user hides only the own prospects; a user who loses the right hides nothing more", async () => {
  const restricted = { role: "sales", permissions: ["canManageProspects"] } as const;
  const stage = await newImport(restricted);
  const context = harness.sound();
  const { caller, repId, ids } = stage;
  const rep: Caller = { ...restricted, companyId: caller.companyId, userId: repId };
  const given = ids.slice(2);
  for (const id of given) await verbs.updateProspect(context, caller, id, { assignedToUserId: caller.userId });
  const own = await begun(stage, rep);
  expect(await untilEnded(stage, own)).toMatchObject({ state: "completed", changed: 2, skipped: given.length });
  expect((await bulk.resultsOf(harness, own)).slice(2).map(({ code }) => code)).toEqual(given.map(() => "not_found"));
  await verbs.updateUser(context, caller, repId, { permissions: ["canManageProspects", "canViewAllProspects"] });
  const lost = await begun(stage, { ...rep, permissions: ["canManageProspects", "canViewAllProspects"] });
  await verbs.updateUser(context, caller, repId, { permissions: ["canViewAllProspects"] });
  expect(await untilEnded(stage, lost)).toMatchObject({ state: "failed", changed: 0 });
  const kept = (await bulk.rowsOf(harness, stage)).filter(({ deletedAt }) => deletedAt === undefined);
  expect(kept.map(({ id }) => id)).toEqual(given);
});

test("an import that was cancelled after it has written rows cannot be undone, and shows none of them", async () => {
  const context = harness.sound();
  const { caller } = await newCompany(context);
  const message = await harness.uploaded(caller, file);
  // The import is killed at its last writes, so all rows are written and none is visible.
  db.plan(killedAt(13));
  expect(await harness.run(harness.faulty(), message)).toBe(false);
  db.plan(() => pass);
  expect(await verbs.cancelImport(context, caller, message.id)).toMatchObject({ state: "cancelled" });
  await expect(verbs.beginImportUndo(context, bulk.silent, caller, message.id, {})).rejects.toMatchObject({
    code: "conflict",
  });
  await harness.settle();
  expect((await readAllProspects(context.table, caller.companyId)).prospects).toEqual([]);
});
