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
  /** The newest version that the log contains. The row must have at least this version. */
  version: number;
  /** The newest change. */
  change: Change;
  /** True if the record has come into the caller's sight or left it, or if this is not known. */
  moves: boolean;
  /** The position before the record's first change. Undefined if all its changes are unflushed. */
  readonly before: Position | undefined;
}

/** Many records that change together: those of an import, or those that show a changed name. They have pages of their own. */
export interface Bulk {
  readonly key: ChangeKey;
  readonly stages: readonly Stage[];
  /** The last id that an older cursor has read. */
  readonly afterId?: number;
  /** The positions before and after the change. Undefined if it is unflushed. */
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

/** What a caller needs to know about the changes in the log. */
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
        // A deletion concerns everybody, because a user who had the prospect before may still have a copy.
        return isWanted && (own === undefined || change.isDeleted || (change.assignee ?? own) === own);
      }
      case "appointment":
        return isWanted && (change.isDeleted || this.#sees(change));
      default:
        return isWanted || this.stagesOf(change).length > 0;
    }
  };

  /** True if notes or appointments are wanted. */
  get hasAttached(): boolean {
    return this.#types.has("notes") || this.#types.has("appointments");
  }

  /** Returns true if the caller saw the prospect before or sees it after the change, or if this is not known. */
  #sees({ before, after }: Pick<ProspectChange, "before" | "after">): boolean {
    const own = visibleAssignee(this.#caller);
    return own === undefined || after === own || before === own || before === undefined;
  }

  /**
   * Returns true if the prospect's notes and appointments come into the caller's sight, or leave it, with this change. Those of a new
   * prospect have entries of their own.
   */
  moves({ version, before, after, isDeleted, isRestored }: ProspectChange): boolean {
    if (version === 1 || !this.hasAttached) return false;
    const own = visibleAssignee(this.#caller);
    if (isDeleted || isRestored) return true;
    return own !== undefined && (before === undefined || (before === own) !== (after === own));
  }

  /** The stages of the records that show a changed name. */
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

/** The records that show the name of a status, tag or user. */
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
  /** How far the log has been read. */
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

  /** Makes the page one of many records that change together. Returns false if the page already has other records. */
  #take(bulk: Bulk): void {
    if (this.#records.size > 0) this.#isFull = true;
    else this.bulk = bulk;
  }

  /** Reads chunks until the page is full, or up to many records that change together. */
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
   * Selects the records of unflushed changes that the client does not have. `changes` must be sorted. A full page still takes note of the
   * newer versions of its records, because the client gets the rows of these versions.
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
