/** Finds the users and API keys that would get back old rights, because their rights in the restored table differ from their rights now. */
import { isDeepStrictEqual } from "node:util";
import * as z from "zod/mini";
import { StoredKey } from "#shared/auth/key-ring.ts";
import type { Item } from "#shared/db/expression.ts";
import { byKey, keyOfRow, type RowStore, scanned, textOf } from "../company/rows.ts";
import type { CarryContext } from "./carry-over.ts";

/** The fields that decide what a key may do, and for how long. */
const KeyRights = z.pick(StoredKey, { id: true, scopes: true, creatorRights: true, expiresAt: true, orphanedAt: true });

/** The row from which the authorizer reads the rights of a user. The row of a service account also contains its keys. */
const Subject = z.looseObject({
  companyId: z.int(),
  userId: z.int(),
  rights: z.optional(z.unknown()),
  suspendedAt: z.optional(z.string()),
  keys: z.optional(z.array(KeyRights)),
});
type Subject = z.infer<typeof Subject>;

const SHOWN = 100;

export async function returningRights({ live, restored }: CarryContext): Promise<string[]> {
  const lines: string[] = [];
  const ofSubjects = {
    FilterExpression: "begins_with(pk, :subject) OR begins_with(pk, :keys)",
    ExpressionAttributeValues: { ":subject": "S#", ":keys": "K#" },
  };
  for await (const { rows } of scanned(restored, ofSubjects)) {
    lines.push(...(await differences(live, rows)));
    if (lines.length >= SHOWN) break;
  }
  return lines.slice(0, SHOWN);
}

async function differences(live: RowStore, rows: readonly Item[]): Promise<string[]> {
  const current = await byKey(live, rows.map(keyOfRow));
  return rows.flatMap((row) => {
    const then = Subject.parse(row);
    const found = current.get(textOf(row));
    const now = found === undefined ? undefined : Subject.parse(found);
    const user = `company ${then.companyId} user ${then.userId}`;
    return [
      ...lineOf(user, now === undefined ? "no user" : stateOf(now), stateOf(then)),
      ...(then.keys ?? []).flatMap((key) => {
        const kept = now?.keys?.find(({ id }) => id === key.id);
        return lineOf(`${user} key ${key.id}`, kept ?? "revoked", key);
      }),
    ];
  });
}

const lineOf = (name: string, before: unknown, after: unknown): string[] =>
  isDeepStrictEqual(before, after) ? [] : [`${name}: now ${stateText(before)}, after the switch ${stateText(after)}`];

const stateOf = ({ rights, suspendedAt }: Subject): unknown => (suspendedAt === undefined ? rights : "suspended");

const stateText = (state: unknown): string => (typeof state === "string" ? state : JSON.stringify(state ?? "unknown"));
