/** Implements the offline client's `Store` for web apps. The data is in the browser's IndexedDB. */
import { type Commit, type Entry, isCurrent, newState, type State, type Store, type StoredRecord } from "./store.ts";

const TABLES = ["state", "records", "outbox"];

/**
 * Opens the store with this name. Several users of a device need separate stores, so the name should contain the user's id, for example
 * `canvassing-17`.
 */
export async function indexedDbStore(name: string): Promise<Store> {
  const opening = indexedDB.open(name, 1);
  opening.onupgradeneeded = () => {
    const db = opening.result;
    db.createObjectStore("state").put(newState(), "state");
    db.createObjectStore("records", { keyPath: ["type", "id"] }).createIndex("generation", "generation");
    db.createObjectStore("outbox", { keyPath: "position", autoIncrement: true });
  };
  const db = await answerOf(opening);
  // If another tab has loaded a newer version of the app, it can upgrade the database only after this tab has closed it.
  db.onversionchange = () => db.close();

  const reading = (table: string): IDBObjectStore => db.transaction(table).objectStore(table);
  return {
    state: () => answerOf<State>(reading("state").get("state")),
    record: (type, id) => answerOf(reading("records").get([type, id])),
    records: (type) => answerOf(reading("records").getAll(IDBKeyRange.bound([type], [type, []]))),
    outbox: () => answerOf<Entry[]>(reading("outbox").getAll()),
    async commit(commit) {
      // `strict` means that the browser reports success only after the operating system has written the data to the disk.
      const transaction = db.transaction(TABLES, "readwrite", { durability: "strict" });
      const ended = endOf(transaction);
      const written = write(transaction, commit);
      // If a write fails, for example because a value cannot be stored, abort the transaction. Otherwise the browser would commit the
      // earlier writes.
      written.catch(() => abort(transaction));
      const [isWritten] = await Promise.all([written, ended]);
      return isWritten;
    },
  };
}

async function write(transaction: IDBTransaction, commit: Commit): Promise<boolean> {
  const { ifCursor, put = [], remove = [], removeBelow = 0, save = [], drop = [] } = commit;
  const [states, records, outbox] = [
    transaction.objectStore("state"),
    transaction.objectStore("records"),
    transaction.objectStore("outbox"),
  ];
  const { cursor } = await answerOf<State>(states.get("state"));
  if (ifCursor !== undefined && ifCursor !== cursor) return false;
  if (commit.state !== undefined) states.put(commit.state, "state");
  const knownOf = ({ type, id }: Pick<StoredRecord, "type" | "id">) =>
    answerOf<StoredRecord | undefined>(records.get([type, id]));
  const known = await Promise.all([...put, ...remove].map(knownOf));
  for (const [i, record] of put.entries()) if (isCurrent(record, known[i])) records.put(record);
  for (const [i, removal] of remove.entries()) {
    if (isCurrent(removal, known[put.length + i])) records.delete([removal.type, removal.id]);
  }
  const old = removeBelow > 0 ? IDBKeyRange.upperBound(removeBelow, true) : undefined;
  const keys = old === undefined ? [] : await answerOf(records.index("generation").getAllKeys(old));
  for (const key of keys) records.delete(key);
  for (const entry of save) {
    const { position } = entry;
    const isKnown = position === undefined || (await answerOf(outbox.count(position))) > 0;
    if (isKnown) outbox.put(entry);
  }
  for (const { position } of drop) if (position !== undefined) outbox.delete(position);
  return true;
}

function abort(transaction: IDBTransaction): void {
  try {
    transaction.abort();
  } catch {
    // The browser has already aborted the transaction, for example because the disk is full.
  }
}

const answerOf = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

const endOf = (transaction: IDBTransaction): Promise<void> =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
