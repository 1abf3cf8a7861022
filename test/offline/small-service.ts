/**
 * A service with the protocol of docs/offline.md, in the process of the test. With it, tests kill the reference client at every call, which
 * would be too slow over HTTP.
 */
import * as z from "zod/mini";
import { fnv1a } from "../sync/device.ts";
import { Phone, type PhoneOptions } from "./phone.ts";

const Operation = z.object({
  opId: z.string(),
  type: z.string(),
  id: z.optional(z.number()),
  clientRecordId: z.optional(z.string()),
  fields: z.optional(z.record(z.string(), z.unknown())),
  baseVersion: z.optional(z.number()),
  occurredAt: z.optional(z.string()),
});
type Operation = z.infer<typeof Operation>;
const Push = z.object({ operations: z.array(z.unknown()) });
const Cursor = z.object({ epoch: z.number(), from: z.number(), after: z.nullable(z.number()) });

interface Row {
  readonly id: number;
  readonly version: number;
  readonly data: Record<string, unknown>;
  readonly isHidden: boolean;
}

const PAGE = 3;
/** Each write of a prospect raises its version by this number. The numbers between are for changes that do not write its row. */
export const STEP = 2 ** 24;
const FACT_AGE_MS = 60 * 86_400_000;
const problem = (status: number, code: string, pointer?: string) => ({
  type: `urn:problem:${code}`,
  title: code,
  status,
  detail: code,
  code,
  requestId: "r",
  errors: pointer === undefined ? [] : [{ pointer, code, message: code }],
});

export class SmallService {
  /** The ids of the operations that had an effect, in the order of their effects. */
  readonly effects: string[] = [];
  /** Names of prospects that the service refuses. A request with an operation that sets such a name gets 400 as a whole. */
  readonly refusedNames = new Set<unknown>();
  /** Number of answers with checksums, by which phones have compared their records. */
  checks = 0;
  nowMs = Date.UTC(2026, 0, 1);
  #rows = new Map<number, Row>();
  #log: number[] = [];
  #receipts = new Map<string, { payload: string; result: object }>();
  #clientRecords = new Map<string, number>();
  /** Names of prospects with which an operation fails each time it is sent, with the outcome `retry`, as after an internal error. */
  readonly failingNames = new Set<unknown>();
  #epoch = 0;
  #reason = "log_restarted";

  /** Returns the visible prospects, as a list of the API shows them. */
  list(): Row["data"][] {
    return [...this.#rows.values()].filter(({ isHidden }) => !isHidden).map(({ data }) => data);
  }

  write(id: number | undefined, change: Partial<Row> & { readonly isDeleted?: boolean }): number {
    const row = id === undefined ? undefined : this.#rows.get(id);
    const known = row ?? { id: this.#log.length + 1, version: 0, data: {}, isHidden: false };
    const version = this.#log.push(known.id) * STEP;
    const { isDeleted, ...changed } = change;
    const next = { ...known, ...changed, version, data: { ...known.data, ...changed.data, id: known.id } };
    if (isDeleted === true) this.#rows.delete(known.id);
    else this.#rows.set(known.id, next);
    return known.id;
  }

  /** Makes all cursors invalid, as a rebuilt index or a change of the user's role does. */
  reset(reason = "log_restarted"): void {
    this.#epoch++;
    this.#reason = reason;
  }

  /** Returns a phone that uses this service. The phone's clock differs from the service's clock by `clockErrorMs`. */
  newPhone({ clockErrorMs = 0, ...options }: Partial<PhoneOptions> & { readonly clockErrorMs?: number } = {}): Phone {
    return new Phone({
      baseUrl: "http://service.test",
      accessToken: () => "token",
      fetch: (request) => this.fetch(request),
      now: () => this.nowMs + clockErrorMs,
      ...options,
    });
  }

  async fetch(request: Request): Promise<Response> {
    const { searchParams } = new URL(request.url);
    const isChecked = searchParams.get("checksum") === "true";
    const [status, value] =
      request.method === "GET"
        ? this.#page(searchParams.get("cursor"), isChecked)
        : this.#push(z.parse(Push, await request.json()).operations);
    return Response.json(value, { status, headers: { Date: new Date(this.nowMs).toUTCString() } });
  }

  #page(cursor: string | null, isChecked: boolean): [number, object] {
    const begin = { epoch: this.#epoch, from: this.#log.length, after: 0 };
    const at = cursor === null ? begin : z.parse(Cursor, JSON.parse(cursor));
    if (at.epoch !== this.#epoch) {
      return [410, { ...problem(410, "sync_reset_required"), reason: this.#reason }];
    }
    const next = (place: z.infer<typeof Cursor>): string => JSON.stringify(place);
    const { after, from } = at;
    if (after !== null) {
      const rows = [...this.#rows.values()]
        .filter(({ id, isHidden }) => id > after && !isHidden)
        .sort((a, b) => a.id - b.id);
      const items = rows.slice(0, PAGE).map(({ id }) => this.#item(id));
      const place = rows.length > PAGE ? (rows[PAGE - 1]?.id ?? null) : null;
      return [200, { phase: "snapshot", items, cursor: next({ ...at, after: place }), hasMore: true, total: 0 }];
    }
    const ids = this.#log.slice(from, from + PAGE);
    const items = ids.map((id) => this.#item(id));
    const to = from + ids.length;
    const hasMore = to < this.#log.length;
    const checksums = isChecked && !hasMore && { checksums: this.#checksums() };
    return [200, { phase: "changes", items, cursor: next({ ...at, from: to }), hasMore, ...checksums }];
  }

  #checksums(): Record<string, string> {
    this.checks++;
    const visible = [...this.#rows.values()].filter(({ isHidden }) => !isHidden);
    const sum = visible.reduce((xor, { id, version }) => xor ^ fnv1a(`prospects:${id}:${version}`), 0n);
    const none = Object.fromEntries(["territories", "statuses", "tags", "users"].map((type) => [type, "0".repeat(16)]));
    return { prospects: sum.toString(16).padStart(16, "0"), ...none };
  }

  #item(id: number): object {
    const row = this.#rows.get(id);
    const version = (this.#log.lastIndexOf(id) + 1) * STEP;
    if (row === undefined) return { type: "prospects", id, version, op: "remove", reason: "deleted" };
    if (row.isHidden) return { type: "prospects", id, version, op: "remove", reason: "hidden" };
    return { type: "prospects", id, version, op: "upsert", data: row.data };
  }

  #push(operations: readonly unknown[]): [number, object] {
    const parsed = operations.map((operation) => z.parse(Operation, operation));
    if (parsed.some(({ fields }) => this.refusedNames.has(fields?.name)))
      return [400, problem(400, "validation_failed")];
    const failed = new Set<unknown>();
    return [
      200,
      {
        results: parsed.map((operation) => {
          const record = operation.id ?? operation.clientRecordId;
          const result = failed.has(record)
            ? { opId: operation.opId, outcome: "blocked", id: null, version: null }
            : this.#apply(operation);
          if (!["applied", "duplicate"].includes(result.outcome)) failed.add(record);
          return result;
        }),
      },
    ];
  }

  #apply(operation: Operation) {
    const { opId, type, clientRecordId = "", fields = {}, baseVersion, occurredAt = "" } = operation;
    const payload = JSON.stringify(operation);
    const receipt = this.#receipts.get(opId);
    const none = { opId, id: null, version: null };
    if (receipt !== undefined && receipt.payload !== payload) {
      return { ...none, outcome: "rejected", problem: problem(409, "idempotency_mismatch") };
    }
    if (receipt !== undefined) return { ...receipt.result, outcome: "duplicate" };
    if (this.failingNames.has(fields.name)) return { ...none, outcome: "retry", problem: problem(500, "internal") };
    const ageMs = this.nowMs - Date.parse(occurredAt);
    if (ageMs < 0 || (fields.currentStatusId !== undefined && ageMs > FACT_AGE_MS)) {
      return { ...none, outcome: "rejected", problem: problem(400, "validation_failed", "/occurredAt") };
    }
    const isNew = type === "prospect.create";
    const id = operation.id ?? this.#clientRecords.get(clientRecordId);
    const row = id === undefined ? undefined : this.#rows.get(id);
    if (!isNew && (row === undefined || row.isHidden)) {
      return { ...none, outcome: "rejected", problem: problem(404, "not_found") };
    }
    if (row !== undefined && baseVersion !== undefined && baseVersion !== row.version) {
      const current = { id: row.id, version: row.version, record: row.data };
      return { opId, outcome: "conflict", ...current, problem: problem(409, "conflict") };
    }
    const data = isNew ? { ...fields, clientRecordId } : fields;
    const written = this.write(isNew ? undefined : id, { data, isDeleted: type === "prospect.delete" });
    if (isNew) this.#clientRecords.set(clientRecordId, written);
    const result = { opId, id: written, version: this.#log.length * STEP };
    this.#receipts.set(opId, { payload, result });
    this.effects.push(opId);
    return { ...result, outcome: "applied" };
  }
}

/** Returns the prospects in the store of a phone, as the list of the service shows them. */
export const dataOf = async ({ store }: Phone): Promise<unknown[]> =>
  (await store.records("prospects")).toSorted((a, b) => a.id - b.id).map(({ data }) => data);
