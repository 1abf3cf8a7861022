/**
 * Selects the records of one page of `GET /api/changes`: first those with changes in chunks of the log, and then those with unflushed
 * changes only. A record is selected once, at its first change, because its item shows its current state.
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
  /** The newest version in the log. The row that is read for the item must have at least this version. */
  version: number;
  change: Change;
  /** True if the record is a prospect whose notes and appointments a change may show or hide (see `Interest.moves`). */
  moves: boolean;
  /** The position before the record's first change. Undefined if all its changes are unflushed. */
  readonly before: Position | undefined;
}

/** Records that change together, such as those of an import or those that show a renamed tag. They do not share a page with others. */
export interface Bulk {
  readonly key: ChangeKey;
  readonly stages: readonly Stage[];
  /** The positions before and after the change. Both are undefined if the change is unflushed. */
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

/** Decides which changes concern a caller, and which other records the caller must get because of a change. */
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

  /** Also returns true if this is not known. A user to whom the prospect was assigned before may have a copy, too. */
  #mayHold({ heldBy }: NoteChange | AppointmentChange): boolean {
    const own = visibleAssignee(this.#caller);
    return own === undefined || heldBy === undefined || heldBy.includes(own);
  }

  get hasAttached(): boolean {
    return this.#types.has("notes") || this.#types.has("appointments");
  }

  /** True if the caller saw the prospect before the change or sees it after the change, or if this is not known. */
  #sees({ before, after }: Pick<ProspectChange, "before" | "after">): boolean {
    const own = visibleAssignee(this.#caller);
    return own === undefined || after === own || before === own || before === undefined;
  }

  /**
   * Returns true if the prospect's notes and appointments become visible or hidden, or if this is not known. For a new prospect the result
   * is false, because its notes and appointments have separate entries in the log.
   */
  moves({ version, before, after, isDeleted, isRestored }: ProspectChange): boolean {
    if (version === 1 || !this.hasAttached) return false;
    const own = visibleAssignee(this.#caller);
    if (isDeleted || isRestored) return true;
    return own !== undefined && (before === undefined || (before === own) !== (after === own));
  }

  /**
   * Returns the reads of the other records that show the changed name. If the client also wants the changed record, the first stage reads
   * it.
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

/** The records that show a name are read only for its last change, because their items show the present name anyway. */
export class Renames {
  readonly #changes: () => readonly Change[];
  readonly #begun: ChangeKey | undefined;
  #newest: ReadonlyMap<number, number> | undefined;

  /**
   * `begun` is the change whose records the client has begun to read. They are read to the end, even if the name has changed again.
   * Otherwise the client would begin again at every change of the name, and might never reach the last record.
   */
  constructor(changes: () => readonly Change[], begun: ChangeKey | undefined) {
    [this.#changes, this.#begun] = [changes, begun];
  }

  /** A change can be skipped if the log contains a later change of the same name. */
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

  /** Prospects whose notes and appointments a change may have shown or hidden. Considers all changes that were read. */
  get moved(): ReadonlySet<number> {
    return this.#moved;
  }

  #watch(change: Change): void {
    if (change.kind === "prospect" && this.#interest.moves(change)) this.#moved.add(change.id);
  }

  /** Returns false if the page is full. */
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

  /** If the page already has other records, it ends before these. */
  #take(bulk: Bulk): void {
    if (this.#records.size > 0) this.#isFull = true;
    else this.bulk = bulk;
  }

  /** Ends when the page is full, or before a change of many records. */
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
   * `changes` must be sorted. The loop does not end when the page is full, because it also notes newer versions of the selected records.
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
