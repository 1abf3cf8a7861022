/**
 * The data that the offline client keeps on the phone: the records, the outbox, and the cursor for `GET /api/changes`. A commit writes all
 * its parts in one transaction.
 */

import type { ChangeItem, SyncOperation, SyncOperationResult } from "./api.ts";

export type ChangeType = ChangeItem["type"];
type With<Item extends ChangeItem> = Item extends unknown
  ? Omit<Item, "op" | "data"> & { op: "upsert"; data: NonNullable<Item["data"]> }
  : never;
type Upsert = With<ChangeItem>;

export const isUpsert = (item: ChangeItem): item is ChangeItem & Upsert => item.op === "upsert";

export type Operation = SyncOperation & { type: NonNullable<SyncOperation["type"]> };

/** The last version of a record that the phone has received from `GET /api/changes` (the feed). */
export type StoredRecord = Upsert & {
  /**
   * The generation in which the phone last received the record. If the service rejects the cursor, the client begins a new generation and
   * reads a new snapshot. When this snapshot is complete, the client removes the records of older generations.
   */
  readonly generation: number;
};
export type RecordOf<Type extends ChangeType> = Extract<StoredRecord, { readonly type: Type }>;

/** An operation in the outbox. The store assigns `position`, by which the outbox is ordered. */
export interface Entry {
  readonly position?: number;
  readonly opId: string;
  readonly operation: Operation;
  /**
   * The name of the record on which the operation works. For a new note on a prospect, this is the prospect, for example `prospects/17`. If
   * the operation fails, later operations on the same record wait.
   */
  readonly record: string;
  /** All records whose version the operation raises, in the same form as `record`. */
  readonly raises: readonly string[];
  /**
   * `waiting`: `sync` has to send the operation. `applied`: the service has applied the operation, but the phone may not have read the
   * changed records yet. `failed`: the user has to decide between `retry` and `discard`.
   */
  readonly state: "waiting" | "applied" | "failed";
  readonly result?: SyncOperationResult;
}

export interface State {
  readonly deviceId: string;
  /** The cursor for the next page of the feed. Null means that a snapshot must begin. */
  readonly cursor: string | null;
  readonly generation: number;
  /** The service's clock minus the phone's clock, measured when the last page of `GET /api/changes` arrived. */
  readonly clockOffsetMs: number;
  /** When the client has last compared its records with the service, in milliseconds since 1970, and the release of the app. */
  readonly checked?: { readonly atMs: number; readonly release: string };
  /** When the client last began a new snapshot because its records differed from the service's, in milliseconds since 1970. */
  readonly renewedAtMs?: number;
}

type Versioned = Pick<StoredRecord, "version" | "generation">;
/** The removal of a record. `version` is the version that the record has in the feed after its removal. */
export type Removal = Versioned & { readonly type: ChangeType; readonly id: number };

export interface Commit {
  /** Write only if the stored cursor equals this one. Otherwise another tab has applied a page meanwhile. */
  readonly ifCursor?: string | null;
  readonly state?: State;
  /** Contains each record at most once. A record does not replace a newer version of the same generation. */
  readonly put?: readonly StoredRecord[];
  /** A removal does not remove a newer version of the same generation. */
  readonly remove?: readonly Removal[];
  /** Removes the records of all generations below this one. */
  readonly removeBelow?: number;
  /**
   * An entry without `position` is added. An entry with `position` replaces the stored entry with this position. If the stored entry was
   * removed meanwhile, the new entry is not written.
   */
  readonly save?: readonly Entry[];
  readonly drop?: readonly Entry[];
}

export interface Store {
  state(): Promise<State>;
  /** Returns false if nothing was written because of `ifCursor`. */
  commit(commit: Commit): Promise<boolean>;
  record<Type extends ChangeType>(type: Type, id: number): Promise<RecordOf<Type> | undefined>;
  records<Type extends ChangeType>(type: Type): Promise<RecordOf<Type>[]>;
  outbox(): Promise<Entry[]>;
}

/**
 * Returns true if `record`, a record or a removal, may replace or remove the stored copy `known`. A record of a newer generation may have a
 * lower version than the copy, because the service may have rebuilt the company index.
 */
export const isCurrent = (record: Versioned, known: Versioned | undefined): boolean =>
  known === undefined || record.generation > known.generation || record.version >= known.version;

export const newState = (): State => ({
  deviceId: crypto.randomUUID(),
  cursor: null,
  generation: 0,
  clockOffsetMs: 0,
});

const isOf = <Type extends ChangeType>(type: Type, record: StoredRecord | undefined): record is RecordOf<Type> =>
  record?.type === type;

/** A store in memory, for tests and for apps that do not work offline. */
export function memoryStore(): Store {
  const records = new Map<string, StoredRecord>();
  const outbox = new Map<number, Entry>();
  let state = newState();
  let positions = 0;
  const keyOf = ({ type, id }: { type: string; id: number }): string => `${type}/${id}`;
  return {
    state: async () => state,
    record: async (type, id) => [records.get(keyOf({ type, id }))].find((record) => isOf(type, record)),
    records: async (type) => [...records.values()].filter((record) => isOf(type, record)),
    outbox: async () => [...outbox.values()],
    async commit({ ifCursor, put = [], remove = [], removeBelow = 0, save = [], drop = [], ...rest }) {
      if (ifCursor !== undefined && ifCursor !== state.cursor) return false;
      state = rest.state ?? state;
      const isAllowed = (one: StoredRecord | Removal): boolean => isCurrent(one, records.get(keyOf(one)));
      const [puts, removals] = [put.filter(isAllowed), remove.filter(isAllowed)];
      for (const record of puts) records.set(keyOf(record), record);
      for (const removal of removals) records.delete(keyOf(removal));
      for (const [key, { generation }] of records) if (generation < removeBelow) records.delete(key);
      for (const entry of save) {
        const position = entry.position ?? ++positions;
        if (entry.position === undefined || outbox.has(position)) outbox.set(position, { ...entry, position });
      }
      for (const { position } of drop) if (position !== undefined) outbox.delete(position);
      return true;
    },
  };
}
