/**
 * Imports a file within one request. Its rows are written under ids that nobody knows yet; then one transaction moves the head of
 * the company index, completes the import and takes the mark off its ranges of ids. Before it nothing of the file is seen.
 */
import type { Caller } from "#shared/auth/caller.ts";
import type { Objects } from "#shared/aws/objects.ts";
import { folded } from "#shared/caseless.ts";
import { iso } from "#shared/clock.ts";
import { addImported } from "#shared/company-index/write/publish.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent, equals } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { packed } from "#shared/db/packed.ts";
import { abandon, clearAbandoned, piecesNamed } from "#shared/jobs/import/abandon.ts";
import { countsOf } from "#shared/jobs/import/batches.ts";
import { blocksOf, leaseForImport } from "#shared/jobs/import/ids.ts";
import { beginning, closing, listed } from "#shared/jobs/import/opening.ts";
import { type ReadFile, readFile } from "#shared/jobs/import/read-file.ts";
import { importRows, type Plan } from "#shared/jobs/import/rows.ts";
import { fileKeys } from "#shared/jobs/import/s3-keys.ts";
import type { FileResult, StoredImport } from "#shared/jobs/import/schema.ts";
import { limits } from "#shared/limits.ts";
import type { Draft } from "#shared/prospects/csv/draft.ts";
import type { Mapping } from "#shared/prospects/csv/mapping.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { freshDictionary } from "#shared/reference/dictionary.ts";
import { ensureTags } from "#shared/reference/tags.ts";

/** The file itself is kept in the bucket as well. */
export type ImportContext = ApiContext & { readonly objects: Pick<Objects, "put"> };

export interface ImportOptions {
  readonly mapping?: Mapping | undefined;
  /** The file is checked, and nothing else. */
  readonly dryRun?: boolean | undefined;
}

/** Throws what `readFile` throws before anything is written. */
export async function importFile(
  context: ImportContext,
  caller: Caller,
  bytes: Uint8Array,
  { mapping, dryRun = false }: ImportOptions = {},
): Promise<FileResult> {
  const dictionary = await freshDictionary(context, caller.companyId);
  const file = await readFile(bytes, dictionary, mapping);
  if (dryRun) return resultOf(null, file);
  return writeFile(context, caller, bytes, dictionary, file);
}

const resultOf = (id: number | null, { drafts, errors }: ReadFile): FileResult => ({
  id,
  dryRun: id === null,
  imported: drafts.length,
  skipped: errors.length,
  errors: [...errors],
});

async function writeFile(
  context: ImportContext,
  caller: Caller,
  bytes: Uint8Array,
  dictionary: Dictionary,
  file: ReadFile,
): Promise<FileResult> {
  const { companyId } = caller;
  await clearAbandoned(context, companyId);
  const id = await context.ids.next();
  await context.objects.put(fileKeys.sent(companyId, id), bytes, "text/csv");
  const tags = await ensureTags(context, companyId, file.newTags);
  const known = [...dictionary.tags.values()].map((tag) => [folded(tag.value), tag.id] as const);
  const names = { dictionary, tagIds: new Map([...known, ...tags]) };
  const { plan, stored } = await planned(context, caller, id, names, file);
  const result = resultOf(id, file);
  if (file.drafts.length === 0) {
    await context.commit(putCompleted(stored), result);
    return result;
  }
  await context.table.transact(beginning(stored, stored.runsUntil));
  try {
    const { items, indexed } = importRows(caller, plan, file.drafts);
    await context.table.batchPut(items);
    const commit = (move: Write) => context.commit([move, ...completion(stored, iso(context.clock.now()))], result);
    await addImported(context, companyId, indexed, { newId: piecesNamed(id), commit });
  } catch (error) {
    // What was completed although its reply was lost is a success; anything else is taken back as far as the table lets it.
    const isCompleted = await abandon(context, stored).catch(() => false);
    if (!isCompleted) throw error;
  }
  return result;
}

/** Everything that is decided once: ids, time, names. */
async function planned(
  context: ApiContext,
  { companyId, userId }: Caller,
  id: number,
  names: Pick<Plan, "dictionary" | "tagIds">,
  { drafts, errors }: ReadFile,
): Promise<{ plan: Plan; stored: StoredImport }> {
  const importId = String(id);
  const { first, blocks } = await leased(context, companyId, id, drafts);
  const nowMs = context.clock.now();
  const now = iso(nowMs);
  const stored: StoredImport = {
    type: "import",
    id,
    companyId,
    state: "running",
    processed: drafts.length + errors.length,
    imported: drafts.length,
    skipped: errors.length,
    errors: packed(errors),
    ...blocks,
    createdBy: userId,
    createdAt: now,
    updatedAt: now,
    version: 1,
    runsUntil: nowMs + limits.idempotentRunMs,
  };
  return { plan: { importId, now, ...names, first }, stored };
}

/** Ids for everything that the drafts will become. */
async function leased({ ids }: ApiContext, companyId: number, importId: number, drafts: readonly Draft[]) {
  const count = countsOf(drafts);
  const first = await leaseForImport(ids, companyId, importId, count);
  return {
    first,
    blocks: {
      prospectBlocks: blocksOf(first.prospect, count.prospect),
      addressBlocks: blocksOf(first.address, count.address),
      noteBlocks: blocksOf(first.note, count.note),
    },
  };
}

const putCompleted = (stored: StoredImport): Write[] => [
  { put: { ...keys.import(stored.companyId, stored.id), ...stored, state: "completed" }, when: absent },
  listed(stored),
];

/** What becomes true with the move of the head. */
const completion = (stored: StoredImport, now: string): Write[] => [
  {
    update: keys.import(stored.companyId, stored.id),
    change: { set: { state: "completed", updatedAt: now }, remove: ["dueShard", "dueAt"], add: { version: 1 } },
    when: equals("version", stored.version),
  },
  ...closing(stored),
];
