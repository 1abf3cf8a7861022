/**
 * Keeps the texts that a user has typed but not sent, in the browser's IndexedDB. A draft belongs to a user of an identity provider (the
 * issuer), a record and a field. It stays until it is sent, discarded or 30 days old, even if the session ends.
 */
export const KEPT_MS = 30 * 24 * 3_600_000;
/** Maximum number of drafts of a user. */
export const MOST_DRAFTS = 200;

interface Key {
  readonly issuer: string;
  readonly user: number;
  /** For example `prospect:12`. */
  readonly record: string;
  readonly field: string;
}

interface StoredDraft extends Key {
  readonly text: string;
  /** A file that the user has chosen. */
  readonly file?: File | undefined;
  /** The title of the draft in a list of all drafts. */
  readonly title: string;
  /** The address of the page on which the draft was typed. */
  readonly path: string;
  readonly savedAt: number;
}

export interface Draft extends StoredDraft {
  /** Why the text is not in IndexedDB and is lost when the user leaves the page. Undefined if it is in IndexedDB. */
  readonly fault: string | undefined;
}

export type NewDraft = Pick<StoredDraft, "record" | "field" | "text" | "file" | "title" | "path">;

/** The drafts of one user, in memory and in IndexedDB. */
export interface Drafts {
  readonly all: () => readonly Draft[];
  /** Calls the listener after each change, also after a change in another tab. Returns a function that removes the listener. */
  readonly subscribe: (listener: () => void) => () => void;
  /** Saves the draft. A text with more code points than `limit` stays only in memory. */
  readonly save: (draft: NewDraft, limit: number) => void;
  /** Deletes the drafts of these fields. Without `fields`, deletes all drafts of the record. */
  readonly drop: (record: string, fields?: readonly string[]) => void;
  /** Deletes all drafts of the user. */
  readonly clear: () => void;
  /** Resolves when IndexedDB has all changes that were made before this call. Never rejects. */
  readonly written: () => Promise<void>;
  readonly close: () => void;
}

const NAME = "canvassing-drafts";
const TABLE = "drafts";

/** Deletes drafts older than `KEPT_MS` of all users, and returns the drafts of this user. Without IndexedDB, drafts are only in memory. */
export async function openDrafts(issuer: string, user: number): Promise<Drafts> {
  const opened = await open(issuer, user).catch(() => undefined);
  let all: readonly Draft[] = opened?.stored.map((draft) => ({ ...draft, fault: undefined })) ?? [];
  let last: Promise<unknown> = Promise.resolve();
  const listeners = new Set<() => void>();
  const isOf = (record: string, field: string) => (draft: Key) => draft.record === record && draft.field === field;
  const replace = (next: readonly Draft[]): void => {
    all = next;
    for (const listener of listeners) listener();
  };
  const without = ({ record, field }: Pick<Key, "record" | "field">): readonly Draft[] => {
    const isSame = isOf(record, field);
    return all.filter((draft) => !isSame(draft));
  };

  // A change in one tab reaches the other tabs, because a draft that was sent in one tab must not be sent again in another.
  const tabs = new BroadcastChannel(NAME);
  tabs.onmessage = ({ data }: MessageEvent<Key & { readonly draft: Draft | undefined }>) => {
    if (data.issuer !== issuer || data.user !== user) return;
    replace(data.draft === undefined ? without(data) : [...without(data), data.draft]);
  };
  const change = (record: string, field: string, draft: Draft | undefined): void => {
    const key = { issuer, user, record, field };
    replace(draft === undefined ? without(key) : [...without(key), draft]);
    tabs.postMessage({ ...key, draft });
    if (draft?.fault !== undefined) return;
    last = write(opened?.db, key, draft).catch(() => {
      // If the draft has changed again meanwhile, the later change reports its own failure.
      if (draft !== undefined && all.includes(draft)) replace([...without(key), { ...draft, fault: NOT_WRITTEN }]);
    });
  };

  return {
    all: () => all,
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    save: (draft, limit) => {
      const { record, field, text } = draft;
      const isNew = all.every((one) => one.fault !== undefined || !isOf(record, field)(one));
      const isFull = isNew && all.filter(({ fault }) => fault === undefined).length >= MOST_DRAFTS;
      // A text never has more code points than its `length`, so most texts need no slow count.
      const isLong = text.length > limit && [...text].length > limit;
      const fault = isLong ? tooLong(limit) : isFull ? FULL : undefined;
      change(record, field, { ...draft, issuer, user, savedAt: Date.now(), fault });
    },
    drop: (record, fields) => {
      for (const draft of all) {
        if (draft.record === record && (fields?.includes(draft.field) ?? true)) change(record, draft.field, undefined);
      }
    },
    clear: () => {
      for (const { record, field } of all) change(record, field, undefined);
    },
    written: async () => {
      await last;
    },
    close: () => {
      tabs.close();
      opened?.db.close();
    },
  };
}

const NOT_WRITTEN = "This browser cannot store the text, so it is lost when you leave the page.";
const FULL = `You have ${MOST_DRAFTS} drafts, and this text is not among them. It is lost when you leave the page. Send or discard others: Sign out lists them.`;
const tooLong = (limit: number): string =>
  `The text has more than ${limit.toLocaleString("en")} characters. What exceeds them is lost when you leave the page.`;

interface Opened {
  readonly db: IDBDatabase;
  readonly stored: readonly StoredDraft[];
}

async function open(issuer: string, user: number): Promise<Opened> {
  const opening = indexedDB.open(NAME, 1);
  opening.onupgradeneeded = () => {
    const table = opening.result.createObjectStore(TABLE, { keyPath: ["issuer", "user", "record", "field"] });
    table.createIndex("savedAt", "savedAt");
  };
  const db = await answerOf(opening);
  // If another tab has loaded a newer version of the console, it can upgrade the database only after this tab has closed it.
  db.onversionchange = () => db.close();
  const table = db.transaction(TABLE, "readwrite").objectStore(TABLE);
  const old = await answerOf(table.index("savedAt").getAllKeys(IDBKeyRange.upperBound(Date.now() - KEPT_MS)));
  for (const key of old) table.delete(key);
  // In IndexedDB, an array is greater than any text, so this range has all keys that begin with the two values.
  const range = IDBKeyRange.bound([issuer, user], [issuer, user, []]);
  return { db, stored: await answerOf<StoredDraft[]>(table.getAll(range)) };
}

async function write(db: IDBDatabase | undefined, key: Key, draft: Draft | undefined): Promise<void> {
  if (db === undefined) throw new Error("this browser has no IndexedDB");
  const transaction = db.transaction(TABLE, "readwrite");
  const table = transaction.objectStore(TABLE);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  transaction.oncomplete = () => resolve();
  transaction.onabort = () => reject(transaction.error);
  if (draft === undefined) table.delete([key.issuer, key.user, key.record, key.field]);
  else {
    const { fault: _, ...stored } = draft;
    table.put(stored);
  }
  // Without this call, the browser would abort the transaction if the user leaves the page now.
  transaction.commit();
  await promise;
}

const answerOf = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
