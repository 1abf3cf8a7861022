/** What else the table holds of an import while it is open: its places in lists, and the marks of what it leased. */
import { iso } from "#shared/clock.ts";
import { absent } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import type { StoredImport } from "#shared/jobs/import/schema.ts";

/** Stands in the list, among the open ones, and is looked after when nobody has finished it by then. */
export const beginning = (stored: StoredImport, dueMs: number): Write[] => {
  const { companyId, id } = stored;
  const due = { dueShard: keys.jobShard, dueAt: iso(dueMs) };
  return [
    { put: { ...keys.import(companyId, id), ...stored, ...due }, when: absent },
    { put: { ...keys.openImport(companyId, id), type: "openImport", id } },
    listed(stored),
  ];
};

export const listed = ({ companyId, id }: Pick<StoredImport, "companyId" | "id">): Write => ({
  put: { ...keys.importEntry(companyId, id), type: "importEntry", id },
});

/** It is open no more, and what it leased is the company's as any other. */
export function closing({
  companyId,
  id,
  prospectBlocks,
  addressBlocks,
}: Pick<StoredImport, "companyId" | "id" | "prospectBlocks" | "addressBlocks">): Write[] {
  const unmarked = { remove: ["importId"] };
  return [
    { remove: keys.openImport(companyId, id) },
    ...(prospectBlocks === null
      ? []
      : [{ update: keys.prospectRange(companyId, prospectBlocks.from), change: unmarked }]),
    ...(addressBlocks === null ? [] : [{ update: keys.addressRange(companyId, addressBlocks.from), change: unmarked }]),
  ];
}
