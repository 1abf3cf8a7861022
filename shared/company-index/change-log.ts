/**
 * The change log of a company, which `GET /api/changes` returns. It says which records have changed, and to whom a changed prospect was
 * assigned before and after. The newest changes are the entries of the search index that no flush has moved into the stored index yet. Each
 * flush copies the changes of its entries into a chunk. The same transaction increases the version of the index's head row. A client that
 * has all changes up to a version therefore finds each later change in a later chunk or in an unflushed entry.
 */
import * as z from "zod/mini";
import { compress } from "#shared/company-index/encoding.ts";
import type { Head } from "#shared/company-index/manifest.ts";
import type { Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";

interface Versioned {
  readonly id: number;
  readonly version: number;
}

/** The assignee of a prospect before and after a change. */
interface Assignees {
  /** Undefined in an entry of release 0.1.0, which does not record it. */
  readonly before?: number | null | undefined;
  readonly after: number | null;
}

/** The change of a prospect. A change of one of its appointments also counts as a change of the prospect. */
export interface ProspectChange extends Versioned, Assignees {
  readonly kind: "prospect";
  readonly isDeleted: boolean;
  /** True if the prospect was deleted before the change. */
  readonly isRestored: boolean;
}

/** The change of an appointment. The same transaction also changes its prospect. */
export interface AppointmentChange extends Versioned, Assignees {
  readonly kind: "appointment";
  readonly prospectId: number;
  readonly isDeleted: boolean;
}

export interface NoteChange extends Versioned {
  readonly kind: "note";
  readonly prospectId: number;
  /** The creation time of the note in milliseconds since 1970, which is part of the note's key. Undefined in an entry of release 0.1.0. */
  readonly createdAt?: number | undefined;
  /** The assignee of the note's prospect. Undefined unless the transaction of the change ensures that the prospect has this assignee. */
  readonly assignee?: number | undefined;
  readonly isDeleted: boolean;
}

/** The change of a record that every user of the company may see. */
export const SharedChange = z.object({
  kind: z.enum(["territory", "status", "tag", "user"]),
  id: z.int(),
  version: z.int(),
  isDeleted: z._default(z.boolean(), false),
  /** True if other records show the changed fields, such as the name of a user. */
  isShownElsewhere: z._default(z.boolean(), false),
  /** The creation time in milliseconds since 1970. Only changes of territories have it, because it is part of a territory's key. */
  createdAt: z.optional(z.int()),
});
export type SharedChange = z.infer<typeof SharedChange>;

export type Change = ProspectChange | AppointmentChange | NoteChange | SharedChange;

/** The first and the last id of a range of new prospects. An import makes all of them visible together. */
export interface IdRange {
  readonly from: number;
  readonly to: number;
}

/** The data that a transaction adds to the change log when it increases the version of the search index's head row. */
export interface Logged {
  readonly changes?: readonly Change[];
  readonly range?: IdRange;
  /** Returns further writes for the transaction in which the head row gets the version `version`. */
  readonly others?: (version: number) => readonly Write[];
}

export interface Chunk extends Required<Pick<Logged, "changes">>, Pick<Logged, "range"> {
  /** The version of the search index's head row after the transaction that has written the chunk. */
  readonly version: number;
  /** Number of this row. A large chunk has several rows, numbered from 0. */
  readonly part: number;
  readonly parts: number;
  /** The version of the chunk before this one. 0 if it is the first chunk. */
  readonly previous: number;
  /** The time at which the chunk was written, in milliseconds since 1970. */
  readonly at: number;
}

const MS_PER_DAY = 86_400_000;

/** Time for which a client can continue from its last position in the log. Later, it must read all records again. */
export const POSITION_MS = 60 * MS_PER_DAY;
/**
 * Time for which a chunk is stored. It is a day longer than POSITION_MS, because a client that begins at an old position may need several
 * requests.
 */
const CHUNK_MS = POSITION_MS + MS_PER_DAY;

/** Maximum number of changes in one row of the table. 8 000 changes have at most 200 KB, and DynamoDB limits a row to 400 KB. */
const CHANGES_PER_ROW = 8_000;

/** Omits fields whose value is false from JSON. Most flags of a change are false, so the chunk becomes smaller. */
const withoutFalse = (_: string, value: unknown): unknown => (value === false ? undefined : value);

/** The attributes of the head row that describe the log. */
type LogOfHead = Pick<Head, "loggedVersion" | "logBegins" | "lastChunk">;

/**
 * Returns those attributes of the head row that describe the log, for the version after `from`. Release 0.1.0 has no change log. If it
 * wrote the version `from`, no chunk contains the changes of that version, so the log then begins again at the version of `from`.
 */
export const logAfter = (from: Head, hasChunk = false): LogOfHead => ({
  loggedVersion: from.version + 1,
  logBegins: logBeginOf(from),
  lastChunk: hasChunk ? from.version + 1 : from.lastChunk,
});

/** Returns the head version from which on the log contains all changes. */
export const logBeginOf = ({ version, loggedVersion, logBegins }: Head): number =>
  loggedVersion === version ? logBegins : version;

/**
 * Returns the writes of a chunk, or no writes if there are no changes. Execute them in the transaction that replaces the head row `from` by
 * its next version.
 */
export function chunkWrites(companyId: number, from: Head, { changes = [], range }: Logged, nowMs: number): Write[] {
  if (changes.length === 0 && range === undefined) return [];
  const parts = Math.max(1, Math.ceil(changes.length / CHANGES_PER_ROW));
  const common = { type: "changeChunk", previous: from.lastChunk, parts, at: nowMs };
  const expiresAt = Math.ceil((nowMs + CHUNK_MS) / 1_000);
  return Array.from({ length: parts }, (_, part) => {
    const some = changes.slice(part * CHANGES_PER_ROW, (part + 1) * CHANGES_PER_ROW);
    const bytes = compress(Buffer.from(JSON.stringify(some, withoutFalse)));
    const own = part === 0 && range !== undefined ? { range: [range.from, range.to] } : {};
    return { put: { ...keys.changeChunk(companyId, from.version + 1, part), ...common, ...own, bytes, expiresAt } };
  });
}
