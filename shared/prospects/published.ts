/** Whether the rows of an import may be seen: all of them from the moment on at which it is completed. */
import * as z from "zod/mini";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

/** A completed import stays so: what is known of one is known for good. */
const known = new WeakMap<Table, Set<string>>();
const REMEMBERED = 10_000;

const State = z.object({ state: z.string() });

/** One look at the table for each import that this function has not heard of. Rows of no import, and of the demo, are always seen. */
export async function isPublished(table: Table, companyId: number, importId: string | undefined): Promise<boolean> {
  if (importId === undefined || !/^\d+$/.test(importId)) return true;
  const completed = known.get(table) ?? new Set<string>();
  known.set(table, completed);
  const name = `${companyId}#${importId}`;
  if (completed.has(name)) return true;
  const item = await table.get(keys.import(companyId, Number(importId)));
  if (item !== undefined && State.parse(item).state !== "completed") return false;
  if (completed.size >= REMEMBERED) completed.clear();
  completed.add(name);
  return true;
}
