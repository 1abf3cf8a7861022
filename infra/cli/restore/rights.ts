/**
 * Finds the users whose rights in the restored table differ from their rights now: a user who was disabled after the restore point would
 * have old rights again. Users who were created later are not in the restored table.
 */
import { isDeepStrictEqual } from "node:util";
import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";
import { byKey, groupsOf, keyOfRow, type RowStore, scanned, textOf } from "../company/rows.ts";
import type { CarryContext } from "./carry-over.ts";

/** The authorizer reads the rights of a user from this row. */
const Subject = z.looseObject({
  companyId: z.int(),
  userId: z.int(),
  rights: z.optional(z.unknown()),
  suspendedAt: z.optional(z.string()),
});

const SHOWN = 100;

/** Returns one line for each user whose rights in the restored table differ from those in the live table, at most 100 lines. */
export async function returningRights({ live, restored }: CarryContext): Promise<string[]> {
  const lines: string[] = [];
  const ofSubjects = {
    FilterExpression: "begins_with(pk, :subject)",
    ExpressionAttributeValues: { ":subject": "S#" },
  };
  for await (const { rows } of scanned(restored, ofSubjects)) {
    for (const group of groupsOf(rows)) lines.push(...(await differences(live, group)));
    if (lines.length >= SHOWN) break;
  }
  return lines.slice(0, SHOWN);
}

async function differences(live: RowStore, rows: readonly Item[]): Promise<string[]> {
  const current = await byKey(live, rows.map(keyOfRow));
  return rows.flatMap((row) => {
    const { companyId, userId, ...then } = Subject.parse(row);
    const now = current.get(textOf(row));
    const [before, after] = [stateOf(then), now === undefined ? "no user" : stateOf(Subject.parse(now))];
    return isDeepStrictEqual(before, after)
      ? []
      : [`company ${companyId} user ${userId}: now ${stateText(after)}, after the switch ${stateText(before)}`];
  });
}

const stateOf = ({ rights, suspendedAt }: Pick<z.infer<typeof Subject>, "rights" | "suspendedAt">) =>
  suspendedAt === undefined ? rights : "suspended";

const stateText = (state: unknown): string => (typeof state === "string" ? state : JSON.stringify(state ?? "unknown"));
