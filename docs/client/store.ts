/** The phone's store: records, outbox and the position in the feed of changes. One commit writes all of its parts or none. */

import type { ChangeItem, SyncOperation, SyncOperationResult } from "./api.ts";

export type ChangeType = ChangeItem["type"];
type With<Item extends ChangeItem> = Item extends unknown
  ? Omit<Item, "op" | "data"> & { op: "upsert"; data: NonNullable<Item["data"]> }
  : never;
type Upsert = With<ChangeItem>;

export const isUpsert = (item: ChangeItem): item is ChangeItem & Upsert => item.op === "upsert";

export type Operation = SyncOperation & { type: NonNullable<SyncOperation["type"]> };

/** A record as the feed of changes last contained it. */
export type StoredRecord = Upsert & {
  /**
   * The feed's generation that last contained the record. Each reset of the feed begins a new generation. When its snapshot is complete,
   * the records of older generations are removed.
   */
  readonly generation: number;
};
export type RecordOf<Type extends ChangeType> = Extract<StoredRecord, { readonly type: Type }>;

/** An operation in the outbox. The store assigns `position`, by which the outbox is ordered. */
export interface Entry {
  readonly position?: number;
  readonly opId: string;
  readonly operation: Operation;
  /** The name of the record on which the operation works. If the operation fails, later operations on the same record wait. */
  readonly record: string;
  /** The names of all records whose version the operation raises. */
  readonly raises: readonly string[];
  /** `waiting`: to be sent, perhaps again. `applied`: the next complete pull shows its effect. `failed`: the user has to decide. */
  readonly state: "waiting" | "applied" | "failed";
  readonly result?: SyncOperationResult;
}

export interface State {
  readonly deviceId: string;
  /** The cursor for the next page of the feed. Null means that a snapshot must begin. */
  readonly cursor: string | null;
  readonly generation: number;
  /** The service's clock minus the phone's clock, measured at the last page. */
  readonly clockOffsetMs: number;
}

export interface Commit {
  /** Write only if the stored cursor equals this one. Otherwise another tab has applied a page meanwhile. */
  readonly ifCursor?: string | null;
  readonly state?: State;
  /** Contains each record at most once. A record does not replace a newer version of the same generation. */
  readonly put?: readonly StoredRecord[];
  readonly remove?: readonly { readonly type: ChangeType; readonly id: number }[];
  /** Removes the records of all generations below this one. */
  readonly removeBelow?: number;
  /**
   * An entry without `position` is added. An entry with `position` replaces the stored entry with this position, unless that was removed
   * meanwhile.
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
 * Returns true unless the store already has a newer version of the same generation. A new generation may begin with lower versions, because
 * the service has rebuilt its index.
 */
export const isCurrent = (record: StoredRecord, known: StoredRecord | undefined): boolean =>
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
      for (const record of put) {
        if (isCurrent(record, records.get(keyOf(record)))) records.set(keyOf(record), record);
      }
      for (const key of remove) records.delete(keyOf(key));
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
