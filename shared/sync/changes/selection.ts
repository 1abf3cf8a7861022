/**
 * Selects the records of one page of changes: first those in chunks of the change log, then those in unflushed entries. A record is
 * selected once, at its first change. The page shows its current state, so its other changes need no items.
 */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import type { Change, Chunk, IdRange, ProspectChange, SharedChange } from "#shared/company-index/change-log.ts";
import type { Position } from "#shared/sync/changes/cursor.ts";
import { byKey, type ChangeKey, type Known } from "#shared/sync/changes/delivered.ts";
import type { ChangeType } from "#shared/sync/changes/schema.ts";
import type { Stage } from "#shared/sync/changes/stages.ts";

export interface Selected {
  readonly id: number;
  /** The newest version of the record that the log contains. The row that is read for the item must have at least this version. */
  version: number;
  /** The newest change of the record. */
  change: Change;
  /** True if the record is a prospect that has become visible to the caller or has ceased to be visible, or if this is not known. */
  moves: boolean;
  /** The position before the record's first change. Undefined if all its changes are unflushed. */
  readonly before: Position | undefined;
}

/** Many records that change together: those of an import, or those that show a changed name. They have pages of their own. */
export interface Bulk {
  readonly key: ChangeKey;
  readonly stages: readonly Stage[];
  /** The last id that a cursor of the old format 1 has read. */
  readonly afterId?: number;
  /** `before` and `after` are the positions in the log before and after the change. Both are undefined if the change is unflushed. */
  readonly before?: Position;
  readonly after?: Position;
}

export const typeOf = {
  prospect: "prospects",
  note: "notes",
  appointment: "appointments",
  territory: "territories",
  status: "statuses",
  tag: "tags",
  user: "users",
} as const satisfies Record<Change["kind"], ChangeType>;

/** Decides which changes in the log concern a caller, and which other records the caller must get because of a change. */
export class Interest {
  readonly #caller: Caller;
  readonly #types: ReadonlySet<ChangeType>;

  constructor(caller: Caller, types: readonly ChangeType[]) {
    this.#caller = caller;
    this.#types = new Set(types);
  }

  readonly concerns = (change: Change): boolean => {
    const isWanted = this.#types.has(typeOf[change.kind]);
    switch (change.kind) {
      case "prospect":
        return isWanted ? this.#sees(change) : this.hasAttached && this.#sees(change) && this.moves(change);
      case "note": {
        const own = visibleAssignee(this.#caller);
        // A deletion concerns everybody, because a user who had the prospect before may still have a copy of the note.
        return isWanted && (own === undefined || change.isDeleted || (change.assignee ?? own) === own);
      }
      case "appointment":
        return isWanted && (change.isDeleted || this.#sees(change));
      default:
        return isWanted || this.stagesOf(change).length > 0;
    }
  };

  /** True if the client wants notes or appointments. */
  get hasAttached(): boolean {
    return this.#types.has("notes") || this.#types.has("appointments");
  }

  /** Returns true if the caller saw the prospect before the change or sees it after the change, or if this is not known. */
  #sees({ before, after }: Pick<ProspectChange, "before" | "after">): boolean {
    const own = visibleAssignee(this.#caller);
    return own === undefined || after === own || before === own || before === undefined;
  }

  /**
   * Returns true if this change makes the prospect's notes and appointments visible to the caller, or hides them. For a new prospect
   * (version 1) the result is false, because its notes and appointments have separate entries in the log.
   */
  moves({ version, before, after, isDeleted, isRestored }: ProspectChange): boolean {
    if (version === 1 || !this.hasAttached) return false;
    const own = visibleAssignee(this.#caller);
    if (isDeleted || isRestored) return true;
    return own !== undefined && (before === undefined || (before === own) !== (after === own));
  }

  /**
   * Returns the stages that read the other records which show the changed name of a status, tag or user. The list is empty if the name has
   * not changed or no wanted type shows it.
   */
  stagesOf(change: Change): readonly Stage[] {
    if (!("isShownElsewhere" in change) || !change.isShownElsewhere) return [];
    const stages = spreading[change.kind](change.id).filter(({ type }) => this.#types.has(type));
    const own = { type: typeOf[change.kind], only: change };
    return stages.length > 0 && this.#types.has(own.type) ? [own, ...stages] : stages;
  }

  rangeStages(range: IdRange): readonly Stage[] {
    return (["prospects", "notes"] as const).filter((type) => this.#types.has(type)).map((type) => ({ type, range }));
  }
}

/** Maps a kind of record to the stages that read the records which show its name. */
const spreading: Record<SharedChange["kind"], (id: number) => readonly Stage[]> = {
  territory: () => [],
  status: (id) => [{ type: "prospects", where: { statusIds: new Set([id]) } }],
  tag: (id) => [{ type: "prospects", where: { tagIds: new Set([id]) } }],
  user: (id) => [
    { type: "prospects", where: { assigneeIds: new Set([id]) } },
    { type: "prospects", showing: id },
    { type: "appointments", showing: id },
    { type: "notes", showing: id },
  ],
};

export class Selection {
  readonly #limit: number;
  readonly #interest: Interest;
  readonly #records = new Map<number, Selected>();
  #isFull = false;
  #readOfChunk = 0;
  /** The position up to which the log has been read. */
  position: Position;
  /** If set, the page consists of these records only. */
  bulk: Bulk | undefined;

  constructor(limit: number, interest: Interest, position: Position) {
    [this.#limit, this.#interest, this.position] = [limit, interest, position];
  }

  get records(): readonly Selected[] {
    return [...this.#records.values()];
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  /** Selects the record. Returns false if the page is full. */
  #add(change: Change, before: Position | undefined): boolean {
    const { id, version } = change;
    const moves = change.kind === "prospect" && this.#interest.moves(change);
    const found = this.#records.get(id);
    if (found !== undefined) {
      if (version >= found.version) [found.version, found.change] = [version, change];
      found.moves ||= moves;
      return true;
    }
    if (this.#isFull || this.#records.size >= this.#limit) {
      this.#isFull = true;
      return false;
    }
    this.#records.set(id, { id, version, change, moves, before });
    return true;
  }

  /** Makes the page consist of these records, which change together. If the page already has other records, it ends before them. */
  #take(bulk: Bulk): void {
    if (this.#records.size > 0) this.#isFull = true;
    else this.bulk = bulk;
  }

  /** Reads chunks until the page is full, or until the next change is one of many records that change together. */
  async addChunks(chunks: AsyncIterable<Chunk>, { isListed }: Known): Promise<void> {
    const { since } = this.position;
    for await (const { version, part, parts, changes, range, at } of chunks) {
      const before = this.position;
      const after = { version, offset: 0, since: Math.max(since, at) };
      if (range !== undefined) {
        const stages = this.#interest.rangeStages(range);
        this.position = stages.length === 0 ? after : before;
        if (stages.length === 0) continue;
        this.#take({ key: { id: version, version: 0 }, stages, afterId: before.offset, before, after });
        return;
      }
      const first = part === 0 ? 0 : this.#readOfChunk;
      for (const [i, change] of changes.entries()) {
        const offset = first + i;
        if (offset < before.offset || !this.#interest.concerns(change) || isListed(change)) continue;
        const here = { ...before, offset };
        const stages = this.#interest.stagesOf(change);
        if (stages.length > 0) {
          this.position = here;
          this.#take({ key: change, stages, before: here, after: { ...before, offset: offset + 1 } });
          return;
        }
        if (this.#add(change, here)) continue;
        this.position = here;
        return;
      }
      this.#readOfChunk = first + changes.length;
      if (part === parts - 1) this.position = after;
    }
  }

  /**
   * Selects the records of unflushed changes that the client does not have. `changes` must be sorted. The loop does not end when the page
   * is full: it also notes newer versions of the selected records, because the rows that are read for them must have at least these
   * versions.
   */
  addUnflushed(changes: readonly Change[], { isDelivered }: Known): void {
    for (const change of changes) {
      if (isDelivered(change)) continue;
      const stages = this.#interest.stagesOf(change);
      if (stages.length === 0) this.#add(change, undefined);
      else if (this.#isFull || this.#records.size > 0) this.#isFull = true;
      else {
        this.bulk = { key: change, stages };
        return;
      }
    }
  }
}

export const sorted = (changes: readonly Change[]): Change[] => changes.toSorted(byKey);
