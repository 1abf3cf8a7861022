/** One run of the work on an export into a file: begins it, or goes on where another run ended. */
import type { Caller } from "#shared/auth/caller.ts";
import { visibleAssignee } from "#shared/auth/caller.ts";
import { StoredUser } from "#shared/auth/user-schema.ts";
import type { FileHeaders, Objects } from "#shared/aws/objects.ts";
import type { JobContext } from "#shared/context.ts";
import { keys } from "#shared/db/keys.ts";
import { FileGone, isTransient } from "#shared/errors.ts";
import { GzipPart, gzipBegin } from "#shared/jobs/export/gzip-parts.ts";
import { exportKeys } from "#shared/jobs/export/s3-keys.ts";
import { type Parts, StoredExport } from "#shared/jobs/export/stored.ts";
import { Held, JobLost } from "#shared/jobs/lease.ts";
import { errorFields, log } from "#shared/log.ts";
import { type Chosen, chooseProspects, exportPieces } from "#shared/prospects/csv/export.ts";
import { decodeOrder, encodeOrder } from "#shared/prospects/csv/export-order.ts";
import { ProspectFilter } from "#shared/prospects/filter.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";

/** S3 wants 5 MB at least, and what is still inside when a part is full comes on top. */
const PART_BYTES = 5_300_000;
/** Runs in a row that died, or failed by a fault of our own code, without progress: then the export is given up. */
const FRUITLESS_RUNS = 10;

const headers: FileHeaders = {
  contentType: "text/csv; charset=utf-8",
  contentEncoding: "gzip",
  contentDisposition: 'attachment; filename="prospects.csv"',
};

interface Place {
  readonly companyId: number;
  readonly id: number;
}

/** Safe to repeat, to kill at any point and to run twice at once. Throws JobLost. */
export async function runExport(
  context: JobContext,
  { companyId, id }: Place,
  remainingMs: () => number,
  partBytes = PART_BYTES,
): Promise<void> {
  const key = keys.export(companyId, id);
  const item = await context.table.get(key);
  if (item === undefined) return;
  const stored = StoredExport.parse(item);
  const held = new Held(context, key, (row) => StoredExport.parse(row), stored, remainingMs);
  if (stored.state !== "running") return item.dueAt === undefined ? undefined : held.end({});
  if (stored.runsUntil > context.clock.now()) return;
  await held.save({ runs: stored.runs + 1 });
  if (stored.runs >= FRUITLESS_RUNS) return fail(context, held, "The export could not be completed.");
  const caller = await callerOf(context, stored);
  if (caller === undefined) return fail(context, held, "Whoever began the export sees less of the company now.");
  try {
    await work(context, held, caller, partBytes);
  } catch (error) {
    if (error instanceof JobLost) throw error;
    // The next run need not wait until this one is taken for dead. A passing fault of AWS does not count against the export.
    const runs = isTransient(error) ? Math.max(0, held.stored.runs - 1) : held.stored.runs;
    await held.release({ runs }).catch(() => undefined);
    throw error;
  }
}

/** As they are now. Undefined: they may not have any more what they asked for. */
async function callerOf({ table }: JobContext, stored: StoredExport): Promise<Caller | undefined> {
  const { companyId, createdBy, assignee } = stored;
  const {
    id: userId,
    role,
    permissions,
    isActive,
  } = StoredUser.parse(await table.get(keys.user(companyId, createdBy)));
  const caller = { companyId, userId, role, permissions };
  const seen = visibleAssignee(caller) ?? null;
  if (!isActive || (seen !== null && seen !== assignee)) return undefined;
  // One who sees more by now gets what was asked for then.
  return assignee === null ? caller : { ...caller, role: "sales", permissions: [] };
}

async function work(context: JobContext, held: Held<StoredExport>, caller: Caller, partBytes: number): Promise<void> {
  try {
    const chosen = await choose(context, held, caller);
    const parts = held.stored.parts ?? (await begin(context, held));
    if (await writeParts(context, held, caller, chosen, { ...parts, partBytes })) return;
  } catch (error) {
    if (!(error instanceof FileGone)) throw error;
    return partsGone(context, held, error);
  }
  await context.jobs.send({ kind: "export", companyId: caller.companyId, id: held.stored.id });
}

/** Decided by the first run. */
async function choose(context: JobContext, held: Held<StoredExport>, caller: Caller): Promise<Chosen> {
  const { companyId, id, total, filter } = held.stored;
  const key = exportKeys.order(companyId, id);
  if (total !== null) {
    const [dictionary, bytes] = await Promise.all([freshDictionary(context, companyId), context.objects.get(key)]);
    return { dictionary, order: decodeOrder(bytes) };
  }
  const chosen = await chooseProspects(context, caller, ProspectFilter.parse(filter));
  await context.objects.put(key, encodeOrder(chosen.order), "application/octet-stream");
  await held.save({ total: chosen.order.ids.length });
  return chosen;
}

async function begin({ objects }: JobContext, held: Held<StoredExport>): Promise<Parts> {
  const { companyId, id } = held.stored;
  const upload = await objects.beginParts(exportKeys.file(companyId, id), headers);
  const parts = { upload, tags: [], ...gzipBegin, fileBytes: 0 };
  await held.save({ processed: 0, parts });
  return parts;
}

/** False: there is no time for all of it. */
async function writeParts(
  context: JobContext,
  held: Held<StoredExport>,
  caller: Caller,
  chosen: Chosen,
  { partBytes, ...begun }: Parts & { readonly partBytes: number },
): Promise<boolean> {
  let parts: Parts = begun;
  let { processed } = held.stored;
  let part = new GzipPart(parts);
  for await (const { text, places } of exportPieces(context, caller, chosen, processed)) {
    await part.write(text);
    processed += places;
    if (part.bytes < partBytes) {
      await held.keep({ read: Math.max(held.stored.read ?? 0, processed) });
      continue;
    }
    parts = await putPart(context, held.stored, parts, part, false);
    await held.save({ processed, parts, runs: 0 });
    if (held.isLate()) {
      await held.release({});
      return false;
    }
    part = new GzipPart(parts);
  }
  parts = await putPart(context, held.stored, parts, part, true);
  const { companyId, id } = held.stored;
  await context.objects.completeParts(exportKeys.file(companyId, id), parts.upload, parts.tags);
  await complete(context, held, { processed, parts });
  return true;
}

async function putPart(
  { objects }: JobContext,
  { companyId, id }: StoredExport,
  { upload, tags, fileBytes }: Parts,
  part: GzipPart,
  isLast: boolean,
): Promise<Parts> {
  const bytes = await part.finish(isLast);
  const tag = await objects.putPart(exportKeys.file(companyId, id), upload, tags.length + 1, bytes);
  return { upload, tags: [...tags, tag], ...part.state, fileBytes: fileBytes + bytes.length };
}

async function complete(
  { objects }: JobContext,
  held: Held<StoredExport>,
  set: Pick<StoredExport, "processed" | "parts">,
): Promise<void> {
  const { companyId, id } = held.stored;
  await held.end({ ...set, state: "completed" });
  await removeOrder(objects, { companyId, id });
}

/** What is missed here is removed with its folder. */
async function removeOrder(objects: Objects, { companyId, id }: Place): Promise<void> {
  await objects.remove(exportKeys.order(companyId, id)).catch((error: unknown) => {
    log.warn("order of an export left behind", { id, ...errorFields(error) });
  });
}

/** The upload is over: by a run that died when it had put the file together, or long ago. Or the order is lost. */
async function partsGone(context: JobContext, held: Held<StoredExport>, error: FileGone): Promise<void> {
  const { companyId, id, total, parts } = held.stored;
  const file = await context.objects.info(exportKeys.file(companyId, id));
  if (file !== undefined && parts !== null) {
    return complete(context, held, { processed: total ?? 0, parts: { ...parts, fileBytes: file.bytes } });
  }
  log.warn("export begins anew", { id, ...errorFields(error) });
  if (parts !== null) await context.objects.abortParts(exportKeys.file(companyId, id), parts.upload);
  await held.release({ parts: null, total: null, processed: 0, read: 0 });
  await context.jobs.send({ kind: "export", companyId, id });
}

async function fail({ objects }: JobContext, held: Held<StoredExport>, failure: string): Promise<void> {
  const { companyId, id, parts } = held.stored;
  if (parts !== null) await objects.abortParts(exportKeys.file(companyId, id), parts.upload);
  await held.end({ state: "failed", failure });
  await removeOrder(objects, { companyId, id });
}
