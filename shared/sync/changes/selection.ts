/**
 * Selects the records of one page of `GET /api/changes`. First come the records whose changes a flush has copied into chunks of the change
 * log. Then come those whose changes are only in unflushed entries (entries of the search index that no flush has processed yet). A record
 * with several changes is selected once, at the first of them, because its item in the page shows the current state of the record.
 */
import { type Caller, visibleAssignee } from "#shared/auth/caller.ts";
import type {
  AppointmentChange,
  Change,
  Chunk,
  IdRange,
  NoteChange,
  ProspectChange,
  SharedChange,
} from "#shared/company-index/change-log.ts";
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
  /** True if the record is a prospect whose notes and appointments a change may show or hide (see `Interest.moves`). */
  moves: boolean;
  /** The position in the change log before the record's first change. Undefined if all its changes are unflushed. */
  readonly before: Position | undefined;
}

/**
 * Many records that change together: the new records of an import, or the records that show a renamed or recoloured status, tag or user, or
 * the records that showed a deleted tag. A page with such records contains no other records.
 */
export interface Bulk {
  readonly key: ChangeKey;
  readonly stages: readonly Stage[];
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
        if (change.isDeleted) return isWanted && this.#mayHold(change);
        return isWanted && (own === undefined || (change.assignee ?? own) === own);
      }
      case "appointment":
        return isWanted && (change.isDeleted ? this.#mayHold(change) : this.#sees(change));
      default:
        return isWanted || this.stagesOf(change).length > 0;
    }
  };

  /**
   * Returns true if a device of the caller may have a copy of the deleted note or appointment, or if this is not known. A user to whom the
   * prospect was assigned before may have one, too.
   */
  #mayHold({ heldBy }: NoteChange | AppointmentChange): boolean {
    const own = visibleAssignee(this.#caller);
    return own === undefined || heldBy === undefined || heldBy.includes(own);
  }

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
   * Returns true if this change makes the prospect's notes and appointments visible to the caller, or hides them, or if this is not known.
   * For a new prospect (version 1) the result is false, because its notes and appointments have separate entries in the log.
   */
  moves({ version, before, after, isDeleted, isRestored }: ProspectChange): boolean {
    if (version === 1 || !this.hasAttached) return false;
    const own = visibleAssignee(this.#caller);
    if (isDeleted || isRestored) return true;
    return own !== undefined && (before === undefined || (before === own) !== (after === own));
  }

  /**
   * Returns the stages (reads of records of one type) that read the other records which show the changed name of a status, tag or user. If
   * the client also wants the type of the changed record, the first stage reads this record. The list is empty if the name has not changed
   * or no wanted type shows it.
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

/** Maps a kind of record to the stages (reads of records of one type) that read the records which show its name. */
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

/**
 * Finds the names of statuses, tags and users that have changed several times. The records that show such a name are read only for its last
 * change, because their items show the present name anyway.
 */
export class Renames {
  readonly #changes: () => readonly Change[];
  readonly #begun: ChangeKey | undefined;
  #newest: ReadonlyMap<number, number> | undefined;

  /**
   * `changes` returns the changes of the log that are already read. `begun` is the change whose records the client has begun to read. These
   * records are read to the end, even if the name has changed again meanwhile. Otherwise the client would begin with the first record at
   * every change of the name, and might never reach the last record.
   */
  constructor(changes: () => readonly Change[], begun: ChangeKey | undefined) {
    [this.#changes, this.#begun] = [changes, begun];
  }

  /**
   * Returns true if the log contains a later change of the same name. This change can be skipped, because the later one selects the records
   * that show the name.
   */
  readonly isSuperseded = (change: Change): boolean => {
    if (!isRename(change) || (this.#begun !== undefined && byKey(change, this.#begun) === 0)) return false;
    this.#newest ??= new Map(
      this.#changes()
        .filter(isRename)
        .toSorted(byKey)
        .map(({ id, version }) => [id, version]),
    );
    return (this.#newest.get(change.id) ?? 0) > change.version;
  };
}

const isRename = (change: Change): boolean => "isShownElsewhere" in change && change.isShownElsewhere;

export class Selection {
  readonly #limit: number;
  readonly #interest: Interest;
  readonly #isSuperseded: Renames["isSuperseded"];
  readonly #records = new Map<number, Selected>();
  readonly #moved = new Set<number>();
  #isFull = false;
  #readOfChunk = 0;
  /** The position up to which the log has been read. */
  position: Position;
  /** If set, the page consists of these records only. */
  bulk: Bulk | undefined;

  constructor(limit: number, interest: Interest, { isSuperseded }: Renames, position: Position) {
    [this.#limit, this.#interest, this.#isSuperseded, this.position] = [limit, interest, isSuperseded, position];
  }

  get records(): readonly Selected[] {
    return [...this.#records.values()];
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  /**
   * Ids of the prospects whose notes and appointments a change may have shown or hidden. Considers all changes that were read, also those
   * that the page does not contain, and those that the client already has.
   */
  get moved(): ReadonlySet<number> {
    return this.#moved;
  }

  #watch(change: Change): void {
    if (change.kind === "prospect" && this.#interest.moves(change)) this.#moved.add(change.id);
  }

  /** Selects the record and returns true. If the page is full, selects nothing and returns false. */
  #add(change: Change, before?: Position): boolean {
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

  /** Reads chunks (rows of the change log) until the page is full, or until the next change is one of many records that change together. */
  async addChunks(chunks: AsyncIterable<Chunk>, { isListed }: Known): Promise<void> {
    const { since } = this.position;
    for await (const { version, part, parts, changes, range, at } of chunks) {
      const before = this.position;
      const after = { version, offset: 0, since: Math.max(since, at) };
      if (range !== undefined) {
        const stages = this.#interest.rangeStages(range);
        this.position = stages.length === 0 ? after : before;
        if (stages.length === 0) continue;
        this.#take({ key: { id: version, version: 0 }, stages, before, after });
        return;
      }
      const first = part === 0 ? 0 : this.#readOfChunk;
      for (const [i, change] of changes.entries()) {
        const offset = first + i;
        this.#watch(change);
        if (offset < before.offset || !this.#interest.concerns(change) || isListed(change)) continue;
        const here = { version: before.version, offset, since: after.since };
        const stages = this.#interest.stagesOf(change);
        if (stages.length > 0) {
          if (this.#isSuperseded(change)) continue;
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
    for (const change of changes) this.#watch(change);
    for (const change of changes) {
      if (isDelivered(change)) continue;
      const stages = this.#interest.stagesOf(change);
      if (stages.length === 0) this.#add(change);
      else if (this.#isSuperseded(change)) continue;
      else if (this.#isFull || this.#records.size > 0) this.#isFull = true;
      else {
        this.bulk = { key: change, stages };
        return;
      }
    }
  }
}

export const sorted = (changes: readonly Change[]): Change[] => changes.toSorted(byKey);
