/** The head: which version of a company's index holds now. It moves by compare-and-set alone. */
import * as z from "zod/mini";
import { checkFormat, INDEX_FORMAT } from "#shared/company-index/manifest.ts";
import { type Condition, equals, missing } from "#shared/db/expression.ts";
import type { Item, Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";
import { ConditionFailed } from "#shared/errors.ts";

/** Of the head's item. */
export const HEAD_TYPE = "indexHead";

const Head = z.object({
  /** Counts the changes of the index; 0: there is none yet. */
  version: z._default(z.int(), 0),
  /** Ids of the runs that hold, oldest first: each has a sheet. */
  manifest: z._default(z.array(z.string()), []),
  /** Counts the changes of the company's names. Written by those changes alone. */
  dictionaryVersion: z._default(z.int(), 0),
  /** Until then (milliseconds since the epoch) no runs are merged, for a rebuild is about to replace those that there are. */
  mergesRestUntil: z._default(z.int(), 0),
  /** The rebuild that merges rest for. */
  rebuildId: z._default(z.nullable(z.string()), null),
});
export type Head = z.infer<typeof Head>;

const Stored = z.object({ format: z._default(z.int(), INDEX_FORMAT) });

/** Throws IndexUnreadable where a later version of the service has written it. */
export function readHead(item: Item | undefined): Head {
  checkFormat("the head of the index", Stored.parse(item ?? {}).format);
  return Head.parse(item ?? {});
}

/** A read of the index learns thereby whether the names that it has in memory still hold. */
export const namesChangeInHead = (companyId: number): Write => ({
  update: keys.indexHead(companyId),
  change: { set: { type: HEAD_TYPE }, add: { dictionaryVersion: 1 } },
});

/** Holds as long as nobody has moved the head since it was read. */
export const isUnmoved = ({ version }: Head): Condition =>
  version === 0 ? missing("version") : equals("version", version);

/** Makes a move of the head, and maybe what goes with it: the move is the first of the writes. */
export type Commit = (move: Write) => Promise<unknown>;

/**
 * Gives undefined when it is done, else the head as it stands: somebody else moved it first, or this very move was done,
 * its reply lost, and others have moved the head since. Writes no more than version and manifest: what else stands in the
 * head, others change at the same time.
 */
export async function moveHead(
  table: Table,
  companyId: number,
  from: Head,
  { version, manifest }: Pick<Head, "version" | "manifest">,
  commit?: Commit,
): Promise<Head | undefined> {
  const set = { type: HEAD_TYPE, format: INDEX_FORMAT, version, manifest };
  const move = { update: keys.indexHead(companyId), change: { set }, when: isUnmoved(from) };
  try {
    await (commit === undefined ? table.write(move) : commit(move));
    return undefined;
  } catch (error) {
    const failed = error instanceof ConditionFailed ? error.failed.find(({ index }) => index === 0) : undefined;
    if (failed === undefined) throw error;
    return readHead(failed.item);
  }
}
