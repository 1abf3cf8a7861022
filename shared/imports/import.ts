/**
 * Imports a file within one request. Its rows are written under ids that nobody knows yet; then one transaction moves the head of
 * the company index, completes the import and takes the mark off its ranges of ids. Before it nothing of the file is seen.
 */
import type { Caller } from "#shared/auth/caller.ts";
import { folded } from "#shared/caseless.ts";
import { iso } from "#shared/clock.ts";
import { freshDictionary } from "#shared/companies/recent-dictionary.ts";
import { addImported } from "#shared/company-index/imported.ts";
import type { Draft } from "#shared/csv/draft.ts";
import { absent, equals } from "#shared/db/expression.ts";
import { blockOf, keys } from "#shared/db/keys.ts";
import { packed } from "#shared/db/packed.ts";
import type { Write } from "#shared/db/table.ts";
import { abandon, clearAbandoned, piecesNamed } from "#shared/imports/abandon.ts";
import { type ReadFile, readFile } from "#shared/imports/read-file.ts";
import { importRows, type Plan } from "#shared/imports/rows.ts";
import type { Blocks, ImportResult, StoredImport } from "#shared/imports/schema.ts";
import { limits } from "#shared/limits.ts";
import { ensureTags } from "#shared/tags/ensure.ts";
import type { World } from "#shared/world.ts";

/** Throws what `readFile` throws before anything is written. */
export async function importFile(world: World, caller: Caller, bytes: Uint8Array): Promise<ImportResult> {
  const { companyId } = caller;
  const dictionary = await freshDictionary(world, companyId);
  const file = await readFile(bytes, dictionary);
  await clearAbandoned(world, companyId);
  const id = await world.ids.next();
  await world.files.put(`imports/${companyId}/${id}.csv`, bytes, "text/csv");
  const tags = await ensureTags(world, companyId, file.newTags);
  const known = [...dictionary.tags.values()].map((tag) => [folded(tag.value), tag.id] as const);
  const names = { dictionary, tagIds: new Map([...known, ...tags]) };
  const { plan, stored } = await planned(world, caller, id, names, file);
  const result: ImportResult = {
    id,
    imported: file.drafts.length,
    skipped: file.errors.length,
    errors: [...file.errors],
  };
  if (file.drafts.length === 0) {
    await world.commit([putCompleted(stored)], result);
    return result;
  }
  await world.table.transact([
    { put: { ...keys.import(companyId, id), ...stored }, when: absent },
    { put: { ...keys.openImport(companyId, id), type: "openImport", id } },
  ]);
  try {
    const { items, indexed } = importRows(caller, plan, file.drafts);
    await world.table.batchPut(items);
    const commit = (move: Write) => world.commit([move, ...completion(stored, iso(world.clock.now()))], result);
    await addImported(world, companyId, indexed, { newId: piecesNamed(id), commit });
  } catch (error) {
    // What was completed although its reply was lost is a success; anything else is taken back as far as the table lets it.
    const isCompleted = await abandon(world, stored).catch(() => false);
    if (!isCompleted) throw error;
  }
  return result;
}

/** Everything that is decided once: ids, time, names. */
async function planned(
  world: World,
  { companyId, userId }: Caller,
  id: number,
  names: Pick<Plan, "dictionary" | "tagIds">,
  { drafts, errors }: ReadFile,
): Promise<{ plan: Plan; stored: StoredImport }> {
  const importId = String(id);
  const { first, blocks } = await leased(world, companyId, importId, drafts);
  const nowMs = world.clock.now();
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
async function leased({ ids }: World, companyId: number, importId: string, drafts: readonly Draft[]) {
  const count = {
    prospect: drafts.length,
    address: drafts.filter(({ address }) => address !== null).length,
    note: drafts.filter(({ note }) => note !== null).length,
    change: drafts.filter(({ statusId }) => statusId !== null).length,
  };
  const [prospect, address, note, change] = await Promise.all([
    count.prospect > 0 ? ids.takeForImport("prospect", companyId, count.prospect, importId) : 0,
    count.address > 0 ? ids.takeForImport("address", companyId, count.address, importId) : 0,
    count.note > 0 ? ids.take(count.note) : 0,
    count.change > 0 ? ids.take(count.change) : 0,
  ]);
  return {
    first: { prospect, address, note, change },
    blocks: {
      prospectBlocks: blocksOf(prospect, count.prospect),
      addressBlocks: blocksOf(address, count.address),
      noteBlocks: blocksOf(note, count.note),
    },
  };
}

const blocksOf = (first: number, count: number): Blocks | null =>
  count === 0 ? null : { from: blockOf(first), to: blockOf(first + count - 1) };

const putCompleted = (stored: StoredImport): Write => ({
  put: { ...keys.import(stored.companyId, stored.id), ...stored, state: "completed" },
  when: absent,
});

/** What becomes true with the move of the head. */
function completion({ companyId, id, version, prospectBlocks, addressBlocks }: StoredImport, now: string): Write[] {
  const unmarked = { remove: ["importId"] };
  return [
    {
      update: keys.import(companyId, id),
      change: { set: { state: "completed", updatedAt: now }, add: { version: 1 } },
      when: equals("version", version),
    },
    { remove: keys.openImport(companyId, id) },
    ...(prospectBlocks === null
      ? []
      : [{ update: keys.prospectRange(companyId, prospectBlocks.from), change: unmarked }]),
    ...(addressBlocks === null ? [] : [{ update: keys.addressRange(companyId, addressBlocks.from), change: unmarked }]),
  ];
}
