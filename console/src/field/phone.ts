/**
 * The copy of the user's data on this device. The field mode shows the copy, and therefore works without a connection. The client in
 * docs/client/offline.ts keeps the copy up to date and sends the user's changes.
 */
import type { Status, StatusSummary, Tag, Territory } from "canvassing-client/api";
import { indexedDbStore } from "canvassing-client/indexeddb-store";
import { type NewOperation, type Outcome, offlineClient } from "canvassing-client/offline";
import { type Commit, type Entry, isCurrent, type Store } from "canvassing-client/store";
import { createContext, use, useSyncExternalStore } from "react";
import { api } from "../api/client.ts";
import { numberText } from "../ui/text.ts";
import { confirmedDoors, type Door, Records, withOutbox } from "./door.ts";
import { storedWalk, storeWalk, type Walk } from "./walk.ts";

/** What the field mode shows at one moment. Each change makes a new object. */
export interface Copy {
  /** By their keys. */
  readonly doors: ReadonlyMap<string, Door>;
  readonly list: readonly Door[];
  readonly statuses: readonly Status[];
  readonly tags: readonly Tag[];
  readonly territories: readonly Territory[];
  readonly outbox: readonly Entry[];
  /** Number of records on this device. */
  readonly records: number;
  readonly isSyncing: boolean;
  /** The outcome of the last sync, or the error with which it failed. */
  readonly outcome: Outcome | Error | undefined;
  /** The end of the last complete download of changes, in milliseconds since 1970. Undefined before the first one has ended. */
  readonly lastContactMs: number | undefined;
}

export interface Phone {
  readonly copy: () => Copy;
  readonly walk: () => Walk;
  readonly keepWalk: (walk: Walk) => void;
  readonly subscribe: (listener: () => void) => () => void;
  /** Stores a change and sends it as soon as possible. Resolves when this device has stored it. */
  readonly act: (operation: NewOperation) => Promise<Entry>;
  readonly sync: () => Promise<void>;
  /** Sends a failed change again. */
  readonly retry: (entry: Entry) => Promise<void>;
  readonly discard: (entry: Entry) => Promise<void>;
  readonly close: () => void;
}

/** The field mode holds all prospects of the user in memory, so their number is limited. */
export const MOST_DOORS = 20_000;
/** The name of the cache for the street map. console/service-worker.js contains the same name. */
export const STREETS_CACHE = "canvassing-streets";
/** Milliseconds for which downloaded records wait until they are shown together, because the pages of a download come quickly. */
const SETTLE_MS = 200;
const SYNC_EVERY_MS = 60_000;

export const databaseName = (issuer: string, user: number): string => `canvassing-field ${issuer} ${user}`;
const contactName = (database: string): string => `${database} contact`;
const walkName = (database: string): string => `${database} walk`;

export async function openPhone(issuer: string, user: number): Promise<Phone> {
  const name = databaseName(issuer, user);
  const stored = await indexedDbStore(name);
  // If a sync ended while an earlier copy was deleted, its time may still be stored. It is ignored for a new copy, which has no cursor yet.
  const { cursor, generation } = await stored.state();
  const isNew = cursor === null && generation === 0;
  const view = createView(isNew ? undefined : Number(localStorage.getItem(contactName(name))) || undefined);
  const tabs = new BroadcastChannel(name);
  let commits = 0;
  const read = async (): Promise<void> => {
    const before = commits;
    const [records, outbox] = [await recordsOf(stored), await stored.outbox()];
    // If this tab has committed meanwhile, the result of the read may lack the commit, so read again.
    await (commits === before ? view.replace(records, outbox) : read());
  };
  // Another tab of this user has changed the copy.
  tabs.onmessage = () => void read();
  await read();

  const store: Store = {
    ...stored,
    commit: async (commit) => {
      if (view.isTooMuch(commit)) throw new Error(tooMany("more"));
      const isWritten = await stored.commit(commit);
      if (isWritten) {
        commits += 1;
        view.apply(commit, await stored.outbox());
        tabs.postMessage("changed");
      }
      return isWritten;
    },
  };
  // The release of the app is the name of the built file with this code, because this name changes with the code.
  const client = offlineClient({ api, store, release: new URL(import.meta.url).pathname, maxAttempts: 3 });

  async function sync(): Promise<void> {
    view.show({ isSyncing: true });
    const outcome = await client
      .sync()
      .catch((error: unknown) => (error instanceof Error ? error : new Error("unknown")));
    const lastContactMs = outcome === "synced" ? Date.now() : view.copy().lastContactMs;
    if (outcome === "synced") localStorage.setItem(contactName(name), `${lastContactMs}`);
    view.end({ isSyncing: false, outcome, lastContactMs });
  }
  const changed = async <T>(change: Promise<T>): Promise<T> => {
    const stored = await change;
    void sync();
    return stored;
  };
  const look = (): void => {
    if (document.visibilityState === "visible" && navigator.onLine) void sync();
  };
  const timer = setInterval(look, SYNC_EVERY_MS);
  addEventListener("online", look);
  document.addEventListener("visibilitychange", look);
  look();

  return {
    copy: view.copy,
    walk: () => storedWalk(walkName(name), new Date()),
    keepWalk: (walk) => storeWalk(walkName(name), walk, new Date()),
    subscribe: view.subscribe,
    sync,
    act: (operation) => changed(client.add(operation)),
    retry: (entry) => changed(client.retry(entry)),
    discard: (entry) => changed(client.discard(entry)),
    close: () => {
      clearInterval(timer);
      removeEventListener("online", look);
      document.removeEventListener("visibilitychange", look);
      tabs.close();
      view.close();
    },
  };
}

export const tooMany = (total: string): string =>
  `You see ${total} prospects, and this device keeps at most ${numberText(MOST_DOORS)}. Use the map instead.`;

const TYPES = ["prospects", "notes", "appointments", "territories", "statuses", "tags"] as const;

const recordsOf = async (store: Store) => (await Promise.all(TYPES.map((type) => store.records(type)))).flat();

type StoredRecords = Awaited<ReturnType<typeof recordsOf>>;

/** Holds the records in memory and turns them into what the field mode shows. */
function createView(lastContactMs: number | undefined) {
  const records = new Records();
  const listeners = new Set<() => void>();
  let [confirmed, timer] = [new Map<string, Door>(), 0];
  let copy: Copy = {
    ...{ doors: new Map(), list: [], statuses: [], tags: [], territories: [], outbox: [], records: 0 },
    ...{ isSyncing: false, outcome: undefined, lastContactMs },
  };
  const show = (next: Partial<Copy>): void => {
    copy = { ...copy, ...next };
    for (const listener of listeners) listener();
  };
  const showOutbox = (outbox: readonly Entry[], next: Partial<Copy> = {}): void => {
    const { statuses } = { ...copy, ...next };
    const doors = withOutbox(confirmed, outbox, new Map<number, StatusSummary>(statuses.map((one) => [one.id, one])));
    show({ ...next, outbox, doors, list: [...doors.values()] });
  };
  const showRecords = (outbox: readonly Entry[]): void => {
    clearTimeout(timer);
    timer = 0;
    confirmed = confirmedDoors(records);
    const [statuses, tags] = [records.of("statuses"), records.of("tags")];
    showOutbox(outbox, {
      // Statuses and tags are sorted as in the lists of the API.
      statuses: statuses.map(({ data }) => data).sort((a, b) => a.sortOrder - b.sortOrder || a.id - b.id),
      tags: tags.map(({ data }) => data).sort((a, b) => a.value.localeCompare(b.value, "en") || a.id - b.id),
      territories: records.of("territories").map(({ data }) => data),
      records: records.all.size,
    });
  };
  return {
    show,
    /** Shows at once what a sync has stored, and how the sync has ended. */
    end: (next: Partial<Copy>): void => {
      if (timer !== 0) showRecords(copy.outbox);
      show(next);
    },
    copy: () => copy,
    subscribe: (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    replace: (all: StoredRecords, outbox: readonly Entry[]): void => {
      records.all.clear();
      for (const record of all) records.all.set(nameOf(record), record);
      showRecords(outbox);
    },
    /**
     * Returns true if the device would have too many prospects after the commit. If the commit belongs to a new snapshot, the records of
     * the old snapshot do not count.
     */
    isTooMuch: ({ put = [] }: Commit): boolean => {
      const ids = new Set(put.flatMap(({ type, id }) => (type === "prospects" ? id : [])));
      if (ids.size === 0) return false;
      const newest = Math.max(...put.map(({ generation }) => generation));
      for (const { id, generation } of records.of("prospects")) if (generation === newest) ids.add(id);
      return ids.size > MOST_DOORS;
    },
    /** Applies a commit that the store has written to the records in memory. */
    apply: (commit: Commit, outbox: readonly Entry[]): void => {
      const { put = [], remove = [], removeBelow = 0 } = commit;
      for (const record of put) {
        if (isCurrent(record, records.all.get(nameOf(record)))) records.all.set(nameOf(record), record);
      }
      for (const removal of remove) {
        if (isCurrent(removal, records.all.get(nameOf(removal)))) records.all.delete(nameOf(removal));
      }
      for (const [key, { generation }] of records.all) if (generation < removeBelow) records.all.delete(key);
      const isNew = timer !== 0 || put.length + remove.length > 0;
      // A change leaves the outbox when the changed record has come. Show the record at the same time as the outbox, or the door would have
      // its old status for a moment.
      if (isNew && outbox.length < copy.outbox.length) showRecords(outbox);
      else {
        if (isNew && timer === 0) timer = window.setTimeout(() => showRecords(copy.outbox), SETTLE_MS);
        showOutbox(outbox);
      }
    },
    close: () => clearTimeout(timer),
  };
}

const nameOf = ({ type, id }: { readonly type: string; readonly id: number }): string => `${type}/${id}`;

/** Opens the copy. Returns undefined if this device has none. */
export async function existingPhone(issuer: string, user: number): Promise<Phone | undefined> {
  const name = databaseName(issuer, user);
  const isThere = (await indexedDB.databases()).some((database) => database.name === name);
  return isThere ? openPhone(issuer, user) : undefined;
}

/** Deletes the user's data from this device. This loses the user's changes that the service has not received yet. */
export async function wipePhone(issuer: string, user: number): Promise<void> {
  const name = databaseName(issuer, user);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  await caches.delete(STREETS_CACHE);
  const deletion = indexedDB.deleteDatabase(name);
  deletion.onsuccess = () => resolve();
  deletion.onerror = () => reject(deletion.error);
  await promise;
  for (const key of [contactName(name), walkName(name)]) localStorage.removeItem(key);
}

export const PhoneContext = createContext<Phone | undefined>(undefined);

export function usePhone(): Phone {
  const phone = use(PhoneContext);
  if (phone === undefined) throw new Error("there is no PhoneContext");
  return phone;
}

export function useCopy(): Copy {
  const { subscribe, copy } = usePhone();
  return useSyncExternalStore(subscribe, copy);
}
