/** The head: which version of a company's index holds now. It moves by compare-and-set alone. */
import * as z from "zod/mini";
import { ConditionFailed } from "#shared/db/errors.ts";
import { equals, missing } from "#shared/db/expression.ts";
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
});
export type Head = z.infer<typeof Head>;

export const readHead = (item: Item | undefined): Head => Head.parse(item ?? {});

/** A read of the index learns thereby whether the names that it has in memory still hold. */
export const namesChangeInHead = (companyId: number): Write => ({
  update: keys.indexHead(companyId),
  change: { set: { type: HEAD_TYPE }, add: { dictionaryVersion: 1 } },
});

/** Makes a move of the head, and maybe what goes with it: the move is the first of the writes. */
export type Commit = (move: Write) => Promise<unknown>;

/** `to` has the next version. False when somebody else moved the head first; nothing is changed then. */
export async function moveHead(
  table: Table,
  companyId: number,
  from: Head,
  to: Head,
  commit?: Commit,
): Promise<boolean> {
  const { version, manifest, retired } = to;
  const move = {
    update: keys.indexHead(companyId),
    change: { set: { type: HEAD_TYPE, version, manifest, retired } },
    when: from.version === 0 ? missing("version") : equals("version", from.version),
  };
  try {
    await (commit === undefined ? table.write(move) : commit(move));
    return true;
  } catch (error) {
    if (error instanceof ConditionFailed && error.failed.some(({ index }) => index === 0)) return false;
    throw error;
  }
}
