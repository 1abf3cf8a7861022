/** Converts the rows of a company's activity to plain JSON, for exports. */
import { decodeCells } from "#shared/company-index/activity/sums.ts";
import { decodeFacts, decodeImported } from "#shared/company-index/facts.ts";
import type { Item } from "#shared/db/expression.ts";

/** Returns the row with its binary fields decoded. Returns undefined if the row does not belong to a company's activity. */
export function readableActivity({ facts, imported, bytes, ...row }: Item): Item | undefined {
  if (row.type === "loggedFacts") {
    return {
      ...row,
      ...(facts instanceof Uint8Array && { facts: decodeFacts(facts) }),
      ...(imported instanceof Uint8Array && { imported: plainImport(imported) }),
    };
  }
  if (!(bytes instanceof Uint8Array)) return undefined;
  if (row.type === "daySum") return { ...row, cells: decodeCells(bytes) };
  if (row.type === "dayFacts") return { ...row, facts: decodeFacts(bytes) };
  return row.type === "dayImport" ? { ...row, imported: plainImport(bytes) } : undefined;
}

/** Bitmaps become base64. Bit i belongs to the prospect with the id `first` + i. */
function plainImport(bytes: Uint8Array): Item {
  const { byStatus, created, withStatus, withNote, ...rest } = decodeImported(bytes);
  const base64 = (bits: Uint8Array): string => Buffer.from(bits).toString("base64");
  return {
    ...rest,
    byStatus: [...byStatus].map(([statusId, count]) => ({ statusId, count })),
    created: base64(created),
    withStatus: base64(withStatus),
    withNote: base64(withNote),
  };
}
