/** Tests who sees an import. Other users than its maker and admins get the same errors, for as many read units, as if it did not exist. */
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import { metered } from "#shared/db/meter.ts";
import { ApiError } from "#shared/errors.ts";
import { listImports, readImport } from "#shared/jobs/import/requests.ts";
import { currentDictionary } from "#shared/reference/dictionary.ts";
import { beginImportUndo, cancelImport, importFile } from "../harness/verbs.ts";
import { newCompany } from "../harness/warm-function.ts";
import { silent } from "./bulk-stage.ts";
import { jobTests } from "./faulty-jobs.ts";

const { now, harness } = jobTests();
const noLink = () => Promise.reject(new Error("no link"));
const noLinks = { download: noLink, upload: noLink };

/** Two managers and an admin of one company, the owner of another, and a large import of the first manager. */
async function stage() {
  const context = harness.sound();
  const { caller: owner, repId } = await newCompany(context);
  const { caller: stranger } = await newCompany(context);
  const manager = (userId: number): Caller => ({
    ...{ companyId: owner.companyId, userId, role: "sales" },
    permissions: ["canManageProspects", "canViewAllProspects"],
  });
  const maker = manager(repId);
  const faults = Array.from({ length: 2_000 }, (_, i) => `${i},x${i * 7_919},y${i * 104_729}`);
  const { id } = await importFile(context, maker, Buffer.from(`name,lat,lng\nAnn,39.7,-105\n${faults.join("\n")}\n`));
  const others = { manager: manager(await context.ids.next()), stranger };
  return { context, owner, maker, others, importId: id ?? 0, missingId: await context.ids.next() };
}

type Context = Awaited<ReturnType<typeof stage>>["context"];
const routes: Record<string, (context: Context, caller: Caller, id: number) => Promise<{ readonly id: number }>> = {
  "GET import": (context, caller, id) => readImport(context, noLinks, caller, id),
  "POST cancel": cancelImport,
  "POST undo": (context, caller, id) => beginImportUndo(context, silent, caller, id, {}),
};

async function refused(work: () => Promise<unknown>) {
  const { result, usage } = await metered(() => work().catch((error: unknown) => error));
  if (!(result instanceof ApiError)) return expect.fail("the request is not refused");
  const { code, message, location } = result;
  return { code, message, location, usage };
}

test("an import of another user is like one that does not exist: the same error, reads and units", async () => {
  const { context, others, importId, missingId } = await stage();
  for (const caller of Object.values(others)) {
    await currentDictionary(context, caller.companyId);
    for (const [name, request] of Object.entries(routes)) {
      const [unseen, missing] = [
        await refused(() => request(context, caller, importId)),
        await refused(() => request(context, caller, missingId)),
      ];
      expect(missing.code).toBe("not_found");
      expect(unseen, name).toEqual(missing);
    }
    expect(await listImports(context, caller, { limit: 20 })).toEqual({ items: [], nextCursor: null });
  }
});

test("the list has exactly the own imports, page by page, for any mix of makers, and all of them for admins", async () => {
  const { context, owner, maker, others, importId } = await stage();
  const made: [Caller, number][] = [[maker, importId]];
  for (const by of [others.manager, maker, owner, maker, others.manager, maker]) {
    now.ms += 60_000;
    made.push([by, (await importFile(context, by, Buffer.from("name,lat,lng\nAnn,39.7,-105\n"))).id ?? 0]);
  }
  for (const [caller, own] of [
    [maker, made.filter(([by]) => by === maker)],
    [others.manager, made.filter(([by]) => by === others.manager)],
    [owner, made],
  ] as const) {
    const listed: number[] = [];
    for (let cursor: number | undefined; ; ) {
      const { items, nextCursor } = await listImports(context, caller, { limit: 2, cursor });
      listed.push(...items.map(({ id }) => id));
      if (nextCursor === null) break;
      expect(items).toHaveLength(2);
      cursor = Number(nextCursor);
    }
    expect(listed).toEqual(own.map(([, id]) => id).toReversed());
  }
});

test("the maker of an import and the admins see it and may undo it; the answer does not name an undo job of another user", async () => {
  const { context, owner, maker, importId } = await stage();
  for (const caller of [maker, owner]) {
    expect(await readImport(context, noLinks, caller, importId)).toMatchObject({ id: importId, skipped: 2_000 });
    expect(await refused(() => cancelImport(context, caller, importId))).toMatchObject({ code: "conflict" });
  }
  const undo = await beginImportUndo(context, silent, owner, importId, {});
  const again = (caller: Caller) => refused(() => beginImportUndo(context, silent, caller, importId, {}));
  expect(await again(owner)).toMatchObject({ code: "conflict", location: `/api/jobs/${undo.id}` });
  const refusal = { code: "conflict", message: "Another job is running.", location: undefined };
  expect(await again(maker)).toMatchObject(refusal);
});

test("the later import is first, also if it has the lower id, and each import says who began it", async () => {
  // Each function reserves a block of ids, so the second import of the first function has a lower id than the import of the second
  // function.
  const [first, second] = [harness.sound(), harness.sound()];
  const { caller, repId } = await newCompany(first);
  const rep = { ...caller, userId: repId };
  const begun: number[] = [];
  for (const [context, user] of [
    [first, caller],
    [second, rep],
    [first, caller],
  ] as const) {
    now.ms += 60_000;
    begun.push((await importFile(context, user, Buffer.from("name,lat,lng\nAnn,39.7,-105\n"))).id ?? 0);
  }
  const [oldest = 0, middle = 0, newest = 0] = begun;
  expect(newest).toBeLessThan(middle);
  const { items } = await listImports(first, caller, { limit: 20 });
  expect(items.map(({ id, createdByUserId }) => [id, createdByUserId])).toEqual([
    [newest, caller.userId],
    [middle, repId],
    [oldest, caller.userId],
  ]);
});
