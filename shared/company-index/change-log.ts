/**
 * The change log of a company, which `GET /api/changes` returns. A flush copies the changes of its entries into a chunk, in the transaction
 * that increases the version of the head. A client that has all changes up to a version finds each later change in a later chunk or in an
 * unflushed entry.
 */
import * as z from "zod/mini";
import { DAY_MS } from "#shared/clock.ts";
import { compress } from "#shared/company-index/encoding.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import type { Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";

const common = { id: z.int(), version: z.int(), isDeleted: z._default(z.boolean(), false) };
/** The assignee of a prospect before and after a change. `after` is null if the prospect has no assignee or is deleted. */
const assignees = { before: z.nullable(z.int()), after: z.nullable(z.int()) };
/** The users whose devices may have a copy of a deleted record. The list lacks users who see all prospects. */
const withHolders = {
  /** Undefined if the record was not deleted, or if the users are not known. */
  holders: z.optional(z.array(z.int())),
};

/** The change of a prospect. A change of one of its appointments also counts as a change of the prospect. */
const ProspectChange = z.object({
  kind: z.literal("prospect"),
  ...common,
  ...assignees,
  /** True if the change restores a deleted prospect. */
  isRestored: z._default(z.boolean(), false),
});
export type ProspectChange = z.infer<typeof ProspectChange>;

/** The change of an appointment. The same transaction also changes its prospect. */
const AppointmentChange = z.object({
  kind: z.literal("appointment"),
  ...common,
  ...assignees,
  ...withHolders,
  prospectId: z.int(),
});
export type AppointmentChange = z.infer<typeof AppointmentChange>;

const NoteChange = z.object({
  kind: z.literal("note"),
  ...common,
  ...withHolders,
  prospectId: z.int(),
  /** The creation time of the note in milliseconds since 1970, which is part of the note's key. Undefined if the note is deleted. */
  createdAt: z.optional(z.int()),
  /** The assignee of the note's prospect, or 0 if it has none. Undefined if the transaction of the change has not checked the assignee. */
  assignee: z.optional(z.int()),
});
export type NoteChange = z.infer<typeof NoteChange>;

/** A change of a territory, status, tag or user. Every user of the company may see these records. */
export const SharedChange = z.object({
  kind: z.enum(["territory", "status", "tag", "user"]),
  ...common,
  /** True if other records show the changed fields, such as the name of a user. */
  isShownElsewhere: z._default(z.boolean(), false),
  /** The creation time in milliseconds since 1970. Only changes of territories have it, because a territory's key contains it. */
  createdAt: z.optional(z.int()),
});
export type SharedChange = z.infer<typeof SharedChange>;

export const Change = z.discriminatedUnion("kind", [ProspectChange, AppointmentChange, NoteChange, SharedChange]);
export type Change = z.infer<typeof Change>;

/** The ids of the prospects of an import, which become visible together. */
export interface IdRange {
  readonly from: number;
  readonly to: number;
}

export interface Logged {
  readonly changes?: readonly Change[];
  readonly range?: IdRange | undefined;
  /** The time of the flush, in milliseconds since 1970. Undefined if the transaction is no flush. */
  readonly flushedAt?: number;
  /** Returns further writes for the same transaction. `version` is the version of the head after the transaction. */
  readonly others?: (version: number) => readonly Write[];
}

export interface Chunk extends Required<Pick<Logged, "changes">>, Pick<Logged, "range"> {
  /** The version of the head after the transaction that has written the chunk. */
  readonly version: number;
  /** Number of this row within the chunk. A large chunk has several rows, numbered from 0. */
  readonly part: number;
  readonly parts: number;
  /** The version of the chunk before this one, or 0 for the first chunk. */
  readonly previous: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** A client can continue from its last position in the change log for this time. Later, it must read all records again. */
export const POSITION_MS = 60 * DAY_MS;
/** A chunk is stored a day longer than `POSITION_MS`, because a client that begins at an old position may need several requests. */
const CHUNK_MS = POSITION_MS + DAY_MS;

/** Maximum number of changes in a row of at most 400 KB. Four users in `holders` count like one more change. */
const CHANGES_PER_ROW = 8_000;
const HOLDERS_PER_CHANGE = 4;

const weightOf = (change: Change): number =>
  1 + ("holders" in change && change.holders !== undefined ? change.holders.length / HOLDERS_PER_CHANGE : 0);

function rowsOf(changes: readonly Change[]): Change[][] {
  const rows: Change[][] = [[]];
  let weight = 0;
  for (const change of changes) {
    weight += weightOf(change);
    if (weight > CHANGES_PER_ROW) {
      rows.push([]);
      weight = weightOf(change);
    }
    rows.at(-1)?.push(change);
  }
  return rows;
}

/** Omits flags that are false. Most flags are false, so chunks become smaller. */
const withoutFalse = (_: string, value: unknown): unknown => (value === false ? undefined : value);

type LogOfHead = Pick<Head, "lastChunk">;

/** Returns the `lastChunk` of the next version of the head. `hasChunk` is true if a chunk is written with this version. */
export const logAfter = (from: Head, hasChunk = false): LogOfHead => ({
  lastChunk: hasChunk ? from.version + 1 : from.lastChunk,
});

/** Returns the writes of a chunk, for the transaction that replaces the head `from`. The caller must add the writes of `logged.others`. */
export function chunkWrites(companyId: number, from: Head, logged: Logged, nowMs: number): Write[] {
  const { changes = [], range } = logged;
  if (changes.length === 0 && range === undefined) return [];
  const rows = rowsOf(changes);
  const common = { type: "changeChunk", previous: from.lastChunk, parts: rows.length, at: nowMs };
  const expiresAt = Math.ceil((nowMs + CHUNK_MS) / 1_000);
  return rows.map((some, part) => {
    const bytes = compress(Buffer.from(JSON.stringify(some, withoutFalse)));
    const own = part === 0 && range !== undefined ? { range: [range.from, range.to] } : {};
    return { put: { ...keys.chunk(companyId, from.version + 1, part), ...common, ...own, bytes, expiresAt } };
  });
}
