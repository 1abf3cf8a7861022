/** The head: which version of a company's index holds now. It moves by compare-and-set alone. */
import * as z from "zod/mini";
import { ConditionFailed } from "#shared/db/errors.ts";
import { type Condition, equals, missing } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Item, Table, Write } from "#shared/db/table.ts";

/** Of the head's item. */
export const HEAD_TYPE = "indexHead";

const ManifestName = z.object({ version: z.int(), id: z.string() });
export type ManifestName = z.infer<typeof ManifestName>;

const Retired = z.extend(ManifestName, {
  /** Milliseconds since the epoch at which it ceased to hold. */
  at: z.int(),
});

const Head = z.object({
  /** Counts the changes of the index; 0: there is none yet. */
  version: z._default(z.int(), 0),
  /** The manifest that holds. */
  manifest: z._default(z.nullable(ManifestName), null),
  /** Manifests that no longer hold, oldest first: a slow reader may still be reading what they lead to. */
  retired: z._default(z.array(Retired), []),
  /** Counts the changes of the company's names. Written by those changes alone. */
  dictionaryVersion: z._default(z.int(), 0),
  /** Until then (milliseconds since the epoch) no runs are merged, for a rebuild is about to replace those that there are. */
  mergesRestUntil: z._default(z.int(), 0),
  /** The rebuild that merges rest for. */
  rebuildId: z._default(z.nullable(z.string()), null),
});
export type Head = z.infer<typeof Head>;

export const readHead = (item: Item | undefined): Head => Head.parse(item ?? {});

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
 * `to` has the next version and a manifest of its own. False when somebody else moved the head first; nothing is changed then.
 * Writes no more than version, manifest and retired: what else stands in the head, others change at the same time.
 */
export async function moveHead(
  table: Table,
  companyId: number,
  from: Head,
  to: Head,
  commit?: Commit,
): Promise<boolean> {
  const { version, manifest, retired } = to;
  const set = { type: HEAD_TYPE, version, manifest, retired };
  const move = { update: keys.indexHead(companyId), change: { set }, when: isUnmoved(from) };
  try {
    await (commit === undefined ? table.write(move) : commit(move));
    return true;
  } catch (error) {
    const failed = error instanceof ConditionFailed ? error.failed.find(({ index }) => index === 0) : undefined;
    if (failed === undefined) throw error;
    // Our own move may have been done and its reply lost, and others have written the head since.
    const standing = readHead(failed.item);
    return [standing.manifest, ...standing.retired].some((name) => name !== null && name.id === manifest?.id);
  }
}
