/** Imports: what became of a file, as the interface shows it and as the table holds it. */
import * as z from "zod/mini";
import { Id, named, Timestamp } from "#shared/schema.ts";

export const RowFault = named(
  "RowFault",
  z.object({ row: z.int(), message: z.string() }),
  "Why a row was skipped. `row` is the row of a spreadsheet: the header is 1.",
);
export type RowFault = z.infer<typeof RowFault>;

const counts = { imported: z.int(), skipped: z.int() };

export const ImportResult = named(
  "ImportResult",
  z.object({ id: Id, ...counts, errors: z.array(RowFault) }),
  "What became of a file: each data row is either imported or skipped with one error.",
);
export type ImportResult = z.infer<typeof ImportResult>;

const state = z.enum(["running", "completed", "failed"]);

export const Import = named(
  "Import",
  z.object({
    id: Id,
    state,
    /** Data rows that were looked at. */
    processed: z.int(),
    ...counts,
    errors: z.array(RowFault),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  }),
  "An import. Its prospects are there from the moment on at which it is completed, and none of them before.",
);
export type Import = z.infer<typeof Import>;

/** Blocks of ids, both ends included. */
const Blocks = z.object({ from: z.int(), to: z.int() });
export type Blocks = z.infer<typeof Blocks>;

export const StoredImport = z.object({
  type: z.literal("import"),
  id: Id,
  companyId: Id,
  state,
  processed: z.int(),
  ...counts,
  /** Packed. */
  errors: z.instanceof(Uint8Array),
  /** What was leased for it, so that what it wrote can be removed; null where it needs none. */
  prospectBlocks: z.nullable(Blocks),
  addressBlocks: z.nullable(Blocks),
  noteBlocks: z.nullable(Blocks),
  createdBy: Id,
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: z.int(),
  /** Milliseconds since the epoch: who has not completed it until then is dead. */
  runsUntil: z.int(),
});
export type StoredImport = z.infer<typeof StoredImport>;
