/**
 * Selects the records of a page of `GET /api/changes`: first those with changes in chunks, then those with only unflushed changes. A record
 * is selected once, at its first change, because its item shows its current state.
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
import {
  byKey,
  type ChangeKey,
  isWithin,
  type Known,
  type PartialChange,
  type Position,
} from "#shared/sync/changes/cursor.ts";
import { typeOf } from "#shared/sync/changes/items.ts";
import type { ChangeType } from "#shared/sync/changes/schema.ts";
import type { Stage } from "#shared/sync/changes/stages.ts";

export interface Selected {
  readonly id: number;
  /** The newest version in the log. The row that is read for the item must have at least this version. */
  version: number;
  change: Change;
  /** True if notes and appointments of the prospect may become visible or hidden (`Interest.moves`). */
  moves: boolean;
  /** The position before the record's first change. Undefined if all changes of the record are unflushed. */
  readonly before: Position | undefined;
}

/** Records that change together, such as those of an import or those that show a renamed tag. Their page has no other records. */
export interface Bulk {
  readonly key: ChangeKey;
  readonly stages: readonly Stage[];
  /** The positions before and after the change. Both are undefined for an unflushed change. */
  readonly before?: Position;
  readonly after?: Position;
}

/** Decides which changes concern a caller, and which other records the caller must get because of a change. */
export class Interest {
  /** The caller's id. Undefined if the caller sees all prospects. */
  readonly #own: number | undefined;
  readonly #types: ReadonlySet<ChangeType>;

  constructor(caller: Caller, types: readonly ChangeType[]) {
    [this.#own, this.#types] = [visibleAssignee(caller), new Set(types)];
  }

  readonly concerns = (change: Change): boolean => {
    const isWanted = this.#types.has(typeOf[change.kind]);
    switch (change.kind) {
      case "prospect":
        return this.#sees(change) && (isWanted || this.moves(change));
      case "note": {
        const isSeen = this.#own === undefined || (change.assignee ?? this.#own) === this.#own;
        return isWanted && (change.isDeleted ? this.#mayHold(change) : isSeen);
      }
      case "appointment":
        return isWanted && (change.isDeleted ? this.#mayHold(change) : this.#sees(change));
      default:
        return isWanted || this.stagesOf(change).length > 0;
    }
  };

  /** False if no device of the caller can have a copy of the note or appointment. */
  #mayHold({ holders }: NoteChange | AppointmentChange): boolean {
    return this.#own === undefined || holders === undefined || holders.includes(this.#own);
  }

  /** True if the caller saw the prospect before the change or sees it afterwards. An unknown assignee may be the caller. */
  #sees({ before, after }: Pick<ProspectChange, "before" | "after">): boolean {
    return this.#own === undefined || after === this.#own || before === this.#own || before === undefined;
  }

  /** True if notes and appointments of the prospect may appear or disappear. False for a new prospect: the log has entries of its notes. */
  readonly moves = (change: Change): boolean => {
    if (change.kind !== "prospect" || change.version === 1) return false;
    if (!this.#types.has("notes") && !this.#types.has("appointments")) return false;
    const { before, after, isDeleted, isRestored } = change;
    if (isDeleted || isRestored) return true;
    return this.#own !== undefined && (before === undefined || (before === this.#own) !== (after === this.#own));
  };

  /** Returns the stages of the records that show a changed name. The first stage is the renamed record, if the client wants it. */
  stagesOf(change: Change): readonly Stage[] {
    if (!isRename(change)) return [];
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

const isRename = (change: Change): change is SharedChange => "isShownElsewhere" in change && change.isShownElsewhere;

/**
 * Returns a function that says whether a rename can be skipped because the log contains a later one of the same record. The change within
 * which the last page ended (`begun`) is not skipped. Otherwise the client might never reach the last record that shows the name.
 */
export function supersededIn(changes: () => readonly Change[], begun: PartialChange | undefined) {
  let newest: ReadonlyMap<number, number> | undefined;
  return (change: Change): boolean => {
    if (!isRename(change) || isWithin(begun, change)) return false;
    newest ??= new Map(
      sorted(changes())
        .filter(isRename)
        .map(({ id, version }) => [id, version]),
    );
    return (newest.get(change.id) ?? 0) > change.version;
  };
}

export class Selection {
  readonly #limit: number;
  readonly #interest: Interest;
  readonly #isSuperseded: (change: Change) => boolean;
  readonly #records = new Map<number, Selected>();
  /** The prospects with a change for which `Interest.moves` is true. */
  readonly moved = new Set<number>();
  isFull = false;
  position: Position;
  bulk: Bulk | undefined;

  constructor(limit: number, interest: Interest, isSuperseded: (change: Change) => boolean, position: Position) {
    [this.#limit, this.#interest, this.#isSuperseded, this.position] = [limit, interest, isSuperseded, position];
  }

  get records(): readonly Selected[] {
    return [...this.#records.values()];
  }

  /** Returns false if the page has no room. A full page still gets newer versions of the records that it has. */
  #add(change: Change, before?: Position): boolean {
    const { id, version } = change;
    const moves = this.#interest.moves(change);
    const found = this.#records.get(id);
    if (found !== undefined) {
      if (version >= found.version) [found.version, found.change] = [version, change];
      found.moves ||= moves;
      return true;
    }
    this.isFull ||= this.#records.size >= this.#limit;
    if (!this.isFull) this.#records.set(id, { id, version, change, moves, before });
    return !this.isFull;
  }

  /** Selects the records of `bulk` for a page without other records. Otherwise, the page ends before them. */
  #take(bulk: Bulk): void {
    if (this.#records.size > 0) this.isFull = true;
    else if (!this.isFull) this.bulk = bulk;
  }

  /** Selects the records with changes in chunks. Stops when the page is full, or at a change that makes many records change. */
  async addChunks(chunks: AsyncIterable<Chunk>, { isListed }: Known): Promise<void> {
    const { since } = this.position;
    let readOfChunk = 0;
    for await (const { version, part, parts, changes, range, at } of chunks) {
      const before = this.position;
      const after = { version, offset: 0, since: Math.max(since, at) };
      if (range !== undefined) {
        const stages = this.#interest.rangeStages(range);
        if (stages.length > 0) return this.#take({ key: { id: version, version: 0 }, stages, before, after });
        this.position = after;
        continue;
      }
      const first = part === 0 ? 0 : readOfChunk;
      for (const [i, change] of changes.entries()) {
        const offset = first + i;
        if (this.#interest.moves(change)) this.moved.add(change.id);
        if (offset < before.offset || !this.#interest.concerns(change) || isListed(change)) continue;
        const here = { version: before.version, offset, since: after.since };
        const stages = this.#interest.stagesOf(change);
        if (stages.length > 0 ? this.#isSuperseded(change) : this.#add(change, here)) continue;
        this.position = here;
        if (stages.length > 0)
          this.#take({ key: change, stages, before: here, after: { ...before, offset: offset + 1 } });
        return;
      }
      readOfChunk = first + changes.length;
      if (part === parts - 1) this.position = after;
    }
  }

  /** `changes` must be sorted. */
  addUnflushed(changes: readonly Change[], { isDelivered }: Known): void {
    for (const change of changes) if (this.#interest.moves(change)) this.moved.add(change.id);
    for (const change of changes) {
      if (isDelivered(change)) continue;
      const stages = this.#interest.stagesOf(change);
      if (stages.length === 0) this.#add(change);
      else if (!this.#isSuperseded(change)) this.#take({ key: change, stages });
      if (this.bulk !== undefined) return;
    }
  }
}

export const sorted = (changes: readonly Change[]): Change[] => changes.toSorted(byKey);
