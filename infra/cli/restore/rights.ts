/**
 * Finds the users whose rights in the restored table differ from their rights now: a user who was disabled after the restore point would
 * have old rights again. Users who were created later are not in the restored table.
 */
import { isDeepStrictEqual } from "node:util";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import * as z from "zod/mini";
import type { Item } from "#shared/db/expression.ts";
import { keyOfRow, ROWS_TOGETHER, type RowStore } from "../company/rows.ts";
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
  for await (const page of subjectPages(restored)) {
    for (let first = 0; first < page.length && lines.length < SHOWN; first += ROWS_TOGETHER) {
      lines.push(...(await differences(live, page.slice(first, first + ROWS_TOGETHER))));
    }
  }
  return lines.slice(0, SHOWN);
}

async function differences(live: RowStore, rows: readonly Item[]): Promise<string[]> {
  const current = new Map((await live.table.batchGet(rows.map(keyOfRow))).map((item) => [item.pk, item]));
  return rows.flatMap((row) => {
    const { companyId, userId, ...then } = Subject.parse(row);
    const now = current.get(row.pk);
    const [before, after] = [stateOf(then), now === undefined ? "no user" : stateOf(Subject.parse(now))];
    return isDeepStrictEqual(before, after)
      ? []
      : [`company ${companyId} user ${userId}: now ${textOf(after)}, after the switch ${textOf(before)}`];
  });
}

const stateOf = ({ rights, suspendedAt }: Pick<z.infer<typeof Subject>, "rights" | "suspendedAt">) =>
  suspendedAt === undefined ? rights : "suspended";

const textOf = (state: unknown): string => (typeof state === "string" ? state : JSON.stringify(state ?? "unknown"));

async function* subjectPages({ client, tableName, reads }: RowStore): AsyncGenerator<readonly Item[]> {
  let from: Item | undefined;
  do {
    const command = new ScanCommand({
      TableName: tableName,
      FilterExpression: "begins_with(pk, :subject)",
      ExpressionAttributeValues: { ":subject": "S#" },
      ExclusiveStartKey: from,
      ReturnConsumedCapacity: "TOTAL",
    });
    const { Items = [], LastEvaluatedKey } = await reads.spend(async () => {
      const result = await client.send(command);
      return { result, units: result.ConsumedCapacity?.CapacityUnits ?? 0 };
    });
    yield Items;
    from = LastEvaluatedKey;
  } while (from !== undefined);
}
