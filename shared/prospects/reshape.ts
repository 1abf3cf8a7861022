/**
 * Rewrites the rows of a company's prospects in another shape (the way in which a row stores the fields) while the company is in use. The
 * version number of a prospect does not change, so no event is sent and the search index does not change.
 */
import * as z from "zod/mini";
import type { AppContext } from "#shared/context.ts";
import { updateEach } from "#shared/db/conditional-writes.ts";
import { equals, type Item, type Write } from "#shared/db/expression.ts";
import type { Key } from "#shared/db/keys.ts";
import * as keys from "#shared/db/keys.ts";
import { metered } from "#shared/db/meter.ts";
import type { Table } from "#shared/db/table.ts";
import {
  notesAttributes,
  type ProspectShape,
  prospectItem,
  shapeOfProspect,
  storedProspect,
} from "#shared/prospects/stored.ts";

export type ReshapeContext = Pick<AppContext, "table" | "clock" | "wait">;

export interface ReshapeOptions {
  /** Maximum read and write units that the job uses per second. The rest of the table's capacity is left to the users. */
  readonly unitsPerSecond: number;
  readonly progress?: (progress: Progress) => void;
}

/**
 * Number of rows that are rewritten in one transaction. It is small, because a user who changes one of these prospects at the same time
 * must wait for the transaction.
 */
const TOGETHER = 10;
/**
 * After this many blocks of 128 ids, the progress is stored even if no row had to be rewritten. After a block with rows to rewrite, the
 * progress is stored at once.
 */
const SAVED_EVERY = 64;
/**
 * Maximum number of passes. Rows that other functions write in another shape than `target` during a pass are rewritten by the next pass.
 */
const PASSES = 5;

/** The row with the progress of the job. A job with another target shape ignores this progress and begins from the start. */
const Progress = z.object({
  type: z.literal("reshaping"),
  target: z.union([z.literal(1), z.literal(2)]),
  state: z.enum(["running", "completed"]),
  pass: z.int(),
  /** The number of a block of 128 ids. All blocks before it are rewritten in this pass. */
  block: z.int(),
  /** Number of rows that this pass has found in a shape other than `target`. */
  found: z.int(),
  /** Number of rows that all passes have rewritten. */
  rewritten: z.int(),
  updatedAt: z.int(),
});
export type Progress = z.infer<typeof Progress>;

const Range = z.object({ from: z.int(), to: z.int() });

export async function readProgress(table: Table, companyId: number): Promise<Progress | undefined> {
  const item = await table.get(keys.reshaping(companyId));
  return item === undefined ? undefined : Progress.parse(item);
}

/**
 * Rewrites all rows that do not have this shape. After a crash, the next call continues at the last stored block. If the last pass still
 * finds rows in the other shape, because other functions keep writing them, the result has the state `running`.
 */
export async function reshapeProspects(
  { table, clock, wait }: ReshapeContext,
  companyId: number,
  shape: ProspectShape,
  { unitsPerSecond, progress: report = () => undefined }: ReshapeOptions,
): Promise<Progress> {
  const started: Progress = {
    ...{ type: "reshaping", target: shape, state: "running", pass: 1, block: 0, found: 0, rewritten: 0 },
    updatedAt: clock.now(),
  };
  const earlier = await readProgress(table, companyId);
  let progress = earlier?.target === shape && earlier.state === "running" ? earlier : started;
  if (progress.pass > PASSES) progress = { ...started, rewritten: progress.rewritten };

  async function save(changes: Partial<Progress>): Promise<void> {
    progress = { ...progress, ...changes, updatedAt: clock.now() };
    await table.batchPut([{ ...keys.reshaping(companyId), ...progress }]);
    report(progress);
  }

  await save({});
  for (;;) {
    for (const block of await blocksFrom(table, companyId, progress.block)) {
      const begun = clock.now();
      const { result, usage } = await metered(() => reshapeBlock(table, companyId, block, shape));
      if (result.found > 0 || block - progress.block >= SAVED_EVERY) {
        await save({
          block: block + 1,
          found: progress.found + result.found,
          rewritten: progress.rewritten + result.rewritten,
        });
      }
      const minimumMs = ((usage.readUnits + usage.writeUnits) / unitsPerSecond) * 1_000;
      const restMs = minimumMs - (clock.now() - begun);
      if (restMs > 0) await wait(restMs);
    }
    if (progress.found === 0) {
      await save({ state: "completed" });
      return progress;
    }
    await save({ pass: progress.pass + 1, block: 0, found: 0 });
    if (progress.pass > PASSES) return progress;
  }
}

/**
 * Returns the numbers of the company's blocks from `first` on, in ascending order. A company with a million prospects has only 8 000
 * blocks, so the list is small.
 */
async function blocksFrom(table: Table, companyId: number, first: number): Promise<number[]> {
  const blocks: number[] = [];
  for await (const item of table.query(keys.prospectRanges(companyId))) {
    const { from, to } = Range.parse(item);
    for (let block = Math.max(from, first); block <= to; block++) blocks.push(block);
  }
  return blocks.sort((a, b) => a - b);
}

type Update = Extract<Write, { update: Key }>;

/** Reads the prospects of one block, page by page, and rewrites those in another shape. */
async function reshapeBlock(table: Table, companyId: number, block: number, shape: ProspectShape) {
  const counts = { found: 0, rewritten: 0 };
  let updates: Update[] = [];
  async function write(): Promise<void> {
    // If the condition of a row fails, another function has changed or deleted the row. The next pass reads it again.
    const refused = updates.length === 0 ? [] : await updateEach(table, updates);
    counts.rewritten += updates.length - refused.length;
    updates = [];
  }
  for await (const item of table.query(keys.prospectsOfBlock(companyId, block))) {
    if (shapeOfProspect(item) === shape) continue;
    counts.found++;
    updates.push(reshaped(item, shape));
    if (updates.length === TOGETHER) await write();
  }
  await write();
  return counts;
}

/**
 * Attributes that are not fields of a prospect but must remain in the row. For example, the count of changes of notes (`notesVersion`) is
 * part of the prospect's ETag.
 */
const KEPT: ReadonlySet<string> = new Set(["writeId", ...notesAttributes]);

/**
 * Returns the update of a row. Every change of a prospect raises the row's version, so the condition fails if the row has changed since
 * it was read.
 */
function reshaped(item: Item, shape: ProspectShape): Update {
  const prospect = storedProspect(item);
  const next = prospectItem(prospect, shape);
  const key = keys.prospect(prospect.companyId, prospect.id);
  const old = Object.keys(item).filter((name) => !(name in next) && !(name in key) && !KEPT.has(name));
  const set = Object.entries(next).filter(([name, value]) => JSON.stringify(item[name]) !== JSON.stringify(value));
  return {
    update: key,
    change: { set: Object.fromEntries(set), remove: old },
    when: equals("version", prospect.version),
  };
}
