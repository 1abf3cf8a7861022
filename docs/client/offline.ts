/**
 * The reference client for phones that are often offline. It pulls the feed of changes into a store and sends the operations of an outbox.
 * docs/offline.md describes the protocol and each failure.
 */
import type { ChangeItem, ChangesPage, SyncOperationResult } from "./api.ts";
import { checkedTypes, checksumOf } from "./checksum.ts";
import type { ApiClient } from "./client.ts";
import {
  type ChangeType,
  type Entry,
  isUpsert,
  type Operation,
  type RecordOf,
  type Store,
  type StoredRecord,
} from "./store.ts";

export type NewOperation = Omit<Operation, "opId" | "occurredAt">;

export interface OfflineOptions {
  readonly api: Pick<ApiClient, "GET" | "POST">;
  readonly store: Store;
  /** `sync` ends after this many failed requests in a row. */
  readonly maxAttempts?: number;
  /** Maximum number of records in a page, 1 to 1 000. */
  readonly pageLimit?: number;
  /**
   * The release of the app. When it changes, the client compares checksums of its records with those of the service, because a fault of an
   * earlier release may have damaged records.
   */
  readonly release?: string;
  readonly now?: () => number;
  readonly wait?: (ms: number) => Promise<unknown>;
}

/**
 * The result of `sync`. `synced`: all changes are read, and all operations are sent, except those that wait because an earlier operation on
 * the same record has failed. `offline`: several attempts failed, so the client may have to read more changes or send more operations.
 * `signed-out`: the service does not accept the token. In each case, the store keeps the operations that are not applied, and the app can
 * call `sync` again at any time.
 */
export type Outcome = "synced" | "offline" | "signed-out";

/** A record, and the operations of the outbox whose effect the record does not show yet. */
export interface Shown<Type extends ChangeType> {
  readonly record: RecordOf<Type> | undefined;
  readonly pending: readonly Entry[];
}

const BATCH = { operations: 200, bytes: 900_000 };
const BACKOFF_MS = { first: 500, most: 60_000 };
const CLOCK_TOLERANCE_MS = 5_000;
const RESETS_PER_RUN = 3;
const DAY_MS = 86_400_000;

/** Thrown to end a run of `sync` early. The store contains everything that the next run needs. */
class Stopped extends Error {
  readonly outcome: Outcome;
  constructor(outcome: Outcome) {
    super(outcome);
    this.outcome = outcome;
  }
}

export function offlineClient({
  api,
  store,
  maxAttempts = 6,
  pageLimit = 500,
  release = "",
  now = Date.now,
  wait = sleep,
}: OfflineOptions) {
  let running: Promise<Outcome> | undefined;
  let isAsked = false;
  let failures = 0;

  /**
   * Waits after a failed request: twice as long each time, with a random part so that phones do not return at the same moment, and at least
   * the time in `Retry-After`. Throws Stopped instead after `maxAttempts` failures in a row.
   */
  async function backOff(response?: Response): Promise<void> {
    if (++failures >= maxAttempts) throw new Stopped("offline");
    const delayMs = Math.min(BACKOFF_MS.first * 2 ** (failures - 1), BACKOFF_MS.most) * (0.5 + Math.random() / 2);
    await wait(Math.max(delayMs, (Number(response?.headers.get("Retry-After")) || 0) * 1_000));
  }

  /**
   * Repeats a request until it gets an answer other than 429 and 5xx. Throws Stopped after a 401, or if `backOff` does. Repeating is safe:
   * reading a page changes nothing, and the service applies an operation only once.
   */
  async function ask<Answer extends { response: Response }>(request: () => Promise<Answer>): Promise<Answer> {
    for (;;) {
      const answer = await request().catch(() => undefined);
      const status = answer?.response.status ?? 0;
      if (status === 401) throw new Stopped("signed-out");
      if (answer !== undefined && status !== 429 && status < 500) return answer;
      await backOff(answer?.response);
    }
  }

  async function push(): Promise<Outcome> {
    let most = BATCH.operations;
    for (;;) {
      const { deviceId } = await store.state();
      const batch = sendable(await store.outbox()).slice(0, most);
      if (batch.length === 0) return "synced";
      const body = { deviceId, operations: batch.map(({ operation }) => operation) };
      const { data, error, response } = await ask(() => api.POST("/api/sync/operations", { body }));
      if (data === undefined) {
        // The service refuses the whole request because of one operation. Sending smaller and smaller batches finds this operation.
        const [entry] = batch;
        if (entry === undefined || error === undefined || (response.status !== 400 && response.status !== 413)) {
          throw new Error(error?.detail ?? `POST /api/sync/operations: ${response.status}`);
        }
        const result: SyncOperationResult = {
          opId: entry.opId,
          outcome: "rejected",
          id: null,
          version: null,
          problem: error,
        };
        if (batch.length === 1) await store.commit({ save: [{ ...entry, state: "failed", result }] });
        most = batch.length === 1 ? BATCH.operations : Math.ceil(batch.length / 2);
        continue;
      }
      const results = new Map(data.results.map((result) => [result.opId, result]));
      const answered = batch.map((entry) => settled(entry, results.get(entry.opId), response));
      await store.commit({ save: answered });
      if (answered.some((entry, i) => entry !== batch[i])) failures = 0;
      // The service may answer `retry` to the same operations each time. After the last attempt, return instead of calling `backOff`,
      // which would throw. `run` then still calls `pull`, so the phone gets the changes of other users.
      else if (failures + 1 >= maxAttempts) return "offline";
      else await backOff(response);
    }
  }

  /** Reads all changes. If `isChecking`, also asks for checksums, and returns false if they differ from those of the stored records. */
  async function pull(isChecking: boolean): Promise<boolean> {
    // The service has already applied these operations, so the pages of this pull contain their effect. The client therefore removes these
    // operations from the outbox when it stores the last page.
    const applied = (await store.outbox()).filter(({ state }) => state === "applied");
    for (let resets = 0; ; ) {
      const state = await store.state();
      const { cursor, generation } = state;
      const checksum = isChecking && { checksum: "true" as const };
      const query = { limit: pageLimit, ...(cursor !== null && { cursor }), ...checksum };
      const { data: page, error, response } = await ask(() => api.GET("/api/changes", { params: { query } }));
      if (response.status === 410) {
        if (++resets > RESETS_PER_RUN) throw new Stopped("offline");
        // The service no longer accepts the cursor, so begin a new snapshot. The old records remain visible until the snapshot is complete.
        await store.commit({ ifCursor: cursor, state: { ...state, cursor: null, generation: generation + 1 } });
        continue;
      }
      if (page === undefined) throw new Error(error?.detail ?? `GET /api/changes: ${response.status}`);
      failures = 0;
      // A page may contain a record more than once. The last item with the highest version is used.
      const items = new Map<string, ChangeItem>();
      for (const item of page.items) {
        const key = `${item.type}/${item.id}`;
        if (item.version >= (items.get(key)?.version ?? item.version)) items.set(key, item);
      }
      const { checksums } = page;
      const checked = checksums && { checked: { atMs: now(), release } };
      const clockOffsetMs = offsetOf(serverTime(response) ?? now(), now());
      const isComplete = page.phase === "changes" || !page.hasMore;
      const isWritten = await store.commit({
        ifCursor: cursor,
        state: { ...state, cursor: page.cursor, clockOffsetMs, ...checked },
        put: [...items.values()].filter(isUpsert).map((item) => ({ ...item, generation })),
        remove: [...items.values()].flatMap(({ op, type, id, version }) =>
          op === "remove" ? [{ type, id, version, generation }] : [],
        ),
        removeBelow: isComplete ? generation : 0,
        drop: page.hasMore ? [] : applied,
      });
      if (isWritten && !page.hasMore) return checksums === undefined || (await isEqual(checksums, page.cursor));
    }
  }

  /** Compares the checksums. Also returns true if another tab has read further, because the records are then newer than the checksums. */
  async function isEqual(checksums: NonNullable<ChangesPage["checksums"]>, cursor: string): Promise<boolean> {
    for (const type of checkedTypes) {
      const own = checksums[type] !== undefined && checksumOf(await store.records(type));
      if (own !== false && own !== checksums[type]) return (await store.state()).cursor !== cursor;
    }
    return true;
  }

  /**
   * Returns true if the checksums must be compared: once a day, after an upgrade of the app, or if the phone's clock was set back by a day.
   */
  async function isCheckDue(): Promise<boolean> {
    const { checked } = await store.state();
    return checked?.release !== release || isPast(checked.atMs);
  }

  const isPast = (ms: number): boolean => Math.abs(now() - ms) >= DAY_MS;

  /**
   * Reads a new snapshot, at most once a day. Called if the records differ from those of the service even after a second comparison. First
   * sends the outbox. The old records remain visible until the snapshot is complete.
   */
  async function renew(): Promise<void> {
    const { renewedAtMs } = await store.state();
    if (renewedAtMs !== undefined && !isPast(renewedAtMs)) return;
    await push();
    failures = 0;
    const state = await store.state();
    const generation = state.generation + 1;
    await store.commit({ ifCursor: state.cursor, state: { ...state, cursor: null, generation, renewedAtMs: now() } });
    await pull(false);
  }

  async function namesOf({ type, id = 0, clientRecordId }: NewOperation): Promise<Pick<Entry, "record" | "raises">> {
    const prospect = async (prospectId: number): Promise<string> => {
      const known = await store.record("prospects", prospectId);
      return known === undefined ? `prospects/${prospectId}` : nameOf(known);
    };
    if (type === "appointment.update") {
      const record = `appointments/${id}`;
      const known = await store.record("appointments", id);
      return { record, raises: known === undefined ? [record] : [record, await prospect(known.data.prospectId)] };
    }
    const record = clientRecordId === undefined ? await prospect(id) : `prospects/${clientRecordId}`;
    // A new note does not raise the version of its prospect. All other operations do, also a new appointment, because the prospect shows
    // its next appointments.
    return { record, raises: type === "note.create" ? [] : [record] };
  }

  async function run(): Promise<Outcome> {
    let outcome: Outcome = "synced";
    try {
      while (isAsked) {
        [isAsked, failures] = [false, 0];
        outcome = await push();
        failures = 0;
        // The checksums may also differ because another user writes at the same moment. So only a difference in a second comparison counts.
        const isSame = (await pull(await isCheckDue())) || (await pull(true));
        if (!isSame) await renew();
      }
      return outcome;
    } catch (error) {
      if (error instanceof Stopped) return error.outcome;
      throw error;
    } finally {
      running = undefined;
    }
  }

  /** Returns the time of the service's clock: the time of the phone plus the difference that was last measured. */
  const timeOfService = async (): Promise<string> =>
    new Date(now() + (await store.state()).clockOffsetMs).toISOString();

  return {
    /** Sends the outbox and then reads all changes. A call during a run starts no second run: the run repeats both steps before it ends. */
    sync(): Promise<Outcome> {
      isAsked = true;
      running ??= run();
      return running;
    },

    /** Stores an operation, which the next `sync` sends. */
    async add(operation: NewOperation): Promise<Entry> {
      const [opId, occurredAt] = [crypto.randomUUID(), await timeOfService()];
      const { record, raises } = await namesOf(operation);
      // If an earlier operation in the outbox raises the version of this record, do not send the caller's `baseVersion`: it would cause a
      // conflict with the phone's own change. Send the raised version if it is known, and otherwise no `baseVersion`.
      const before = (await store.outbox()).findLast((entry) => entry.raises.includes(record));
      const known = before === undefined ? operation.baseVersion : versionAfter(before, record);
      const { baseVersion: _, ...rest } = operation;
      const sent = { ...rest, opId, occurredAt, ...(known != null && { baseVersion: known }) };
      const entry: Entry = { opId, operation: sent, record, raises, state: "waiting" };
      await store.commit({ save: [entry] });
      return entry;
    },

    /**
     * Returns the records of a type, each with the operations whose effect it does not show yet. A prospect that was created offline has no
     * record until the service has applied its operation. New notes and appointments appear as operations on their prospect until the feed
     * contains them.
     */
    async shown<Type extends ChangeType>(type: Type): Promise<Shown<Type>[]> {
      const pending = Map.groupBy(await store.outbox(), ({ record }) => record);
      const shown: Shown<Type>[] = [];
      for (const record of await store.records(type)) {
        const name = nameOf(record);
        shown.push({ record, pending: pending.get(name) ?? [] });
        pending.delete(name);
      }
      if (type !== "prospects") return shown;
      const unknown = [...pending.values()].filter(([first]) => first?.operation.type === "prospect.create");
      return [...shown, ...unknown.map((entries) => ({ record: undefined, pending: entries }))];
    },

    /** Returns the operations about which the user has to decide. Later operations on the same record wait for the decision. */
    failed: async (): Promise<Entry[]> => (await store.outbox()).filter(({ state }) => state === "failed"),

    /**
     * Replaces a failed operation in the outbox by a new one, which the next `sync` sends. The fields of `change` replace fields of the
     * operation. After a conflict, `baseVersion` becomes the current version from the service's answer. If the service has refused the
     * operation's time as too old, `occurredAt` becomes the present time.
     */
    async retry(entry: Entry, change: Partial<Omit<Operation, "opId">> = {}): Promise<void> {
      const opId = crypto.randomUUID();
      const version = entry.result?.version;
      const baseVersion = entry.operation.baseVersion === undefined ? undefined : version;
      const time = isTimeRefused(entry.result) ? { occurredAt: await timeOfService() } : {};
      const base = baseVersion != null ? { baseVersion } : {};
      const operation = { ...entry.operation, ...base, ...time, ...change, opId };
      const { result: _, ...rest } = entry;
      await store.commit({ save: [{ ...rest, opId, operation, state: "waiting" }] });
    },

    /**
     * Removes a failed operation from the outbox. If the operation is a `prospect.create`, all other operations on the same prospect are
     * removed too, because the prospect does not exist.
     */
    async discard(entry: Entry): Promise<void> {
      const isCreate = entry.operation.type === "prospect.create";
      const later = (await store.outbox()).filter(({ record }) => record === entry.record);
      await store.commit({ drop: isCreate ? later : [entry] });
    },
  };
}

/**
 * Returns the waiting operations in their order, at most as many as one request may contain. Leaves out operations on a record for which
 * another operation has failed.
 */
function sendable(entries: readonly Entry[]): Entry[] {
  const held = new Set(entries.filter(({ state }) => state === "failed").map(({ record }) => record));
  const batch: Entry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    if (entry.state !== "waiting" || held.has(entry.record)) continue;
    bytes += new TextEncoder().encode(JSON.stringify(entry.operation)).length + 1;
    if (batch.length > 0 && (bytes > BATCH.bytes || batch.length === BATCH.operations)) break;
    batch.push(entry);
  }
  return batch;
}

const isTimeRefused = (result: SyncOperationResult | undefined): boolean =>
  result?.problem?.errors.some(({ pointer }) => pointer?.endsWith("/occurredAt") === true) === true;

/** Returns the entry with the result of its operation. Returns the same object if the operation must be sent again unchanged. */
function settled(entry: Entry, result: SyncOperationResult | undefined, response: Response): Entry {
  if (result === undefined || result.outcome === "retry" || result.outcome === "blocked") return entry;
  const isApplied = result.outcome === "applied" || result.outcome === "duplicate";
  const at = serverTime(response);
  if (isTimeRefused(result) && at !== undefined && Date.parse(entry.operation.occurredAt ?? "") > at) {
    // The phone's clock is ahead. The rejected operation had no effect, so a new operation with the service's time replaces it.
    const opId = crypto.randomUUID();
    const occurredAt = new Date(at).toISOString();
    return { ...entry, opId, operation: { ...entry.operation, opId, occurredAt } };
  }
  return { ...entry, state: isApplied ? "applied" : "failed", result };
}

/**
 * Returns the name of the record in the outbox, for example `prospects/17`. A prospect that was created offline keeps the name with its
 * `clientRecordId` when the service has given it an id.
 */
const nameOf = ({ type, id, data }: StoredRecord): string =>
  `${type}/${("clientRecordId" in data ? data.clientRecordId : undefined) ?? id}`;

/**
 * Returns the version of the record `of` after the operation. Returns undefined if the operation is not applied yet, or if its result
 * contains the version of another record.
 */
function versionAfter({ state, operation, record, result }: Entry, of: string): number | null | undefined {
  return state === "applied" && record === of && operation.type !== "appointment.create" ? result?.version : undefined;
}

/** Returns the time in the header `Date`. Browsers let a page of another origin read this header only if the service exposes it. */
function serverTime({ headers }: Response): number | undefined {
  const time = Date.parse(headers.get("Date") ?? "");
  return Number.isNaN(time) ? undefined : time;
}

/**
 * Returns the service's clock minus the phone's clock in milliseconds. A difference below `CLOCK_TOLERANCE_MS` counts as 0, because the
 * header `Date` has whole seconds and the response took some time to arrive.
 */
const offsetOf = (serverTime: number, now: number): number =>
  Math.abs(serverTime - now) < CLOCK_TOLERANCE_MS ? 0 : serverTime - now;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
