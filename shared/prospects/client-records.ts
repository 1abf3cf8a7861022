/** Ids that clients choose for new prospects, because an offline device gets none from the service. A user may use each id only once. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { ReadContext } from "#shared/context.ts";
import { absent, type Write } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ApiError, type ConditionFailed } from "#shared/errors.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";
import { Id } from "#shared/schema.ts";

export const StoredClientRecord = z.object({
  type: z.literal("clientRecord"),
  /** In lower case. */
  clientRecordId: z.string(),
  prospectId: Id,
});

const keyOf = ({ companyId, userId }: Pick<Caller, "companyId" | "userId">, clientRecordId: string) =>
  keys.clientRecord(companyId, userId, clientRecordId.toLowerCase());

/** Fails with `conflict` if the same user has used the id before. */
export function clientRecordWrites({ companyId, createdBy: userId, id, clientRecordId }: StoredProspect): Write[] {
  if (clientRecordId === undefined) return [];
  const row: z.infer<typeof StoredClientRecord> = {
    type: "clientRecord",
    clientRecordId: clientRecordId.toLowerCase(),
    prospectId: id,
  };
  const put = { ...keyOf({ companyId, userId }, clientRecordId), ...row };
  return [{ put, when: absent, orThrow: () => clientRecordInUse() }];
}

/** `existingId` is the id of the prospect that has this `clientRecordId`, if the caller sees that prospect. */
export function clientRecordInUse(existingId?: number): ApiError {
  const message = "is already the id of another prospect that you have created";
  const faults = [{ pointer: "/clientRecordId", code: "duplicate", message }];
  return new ApiError("conflict", `clientRecordId: ${message}.`, { faults, members: { existingId } });
}

/** Returns the id of the prospect that already has the client id. Undefined if the creation has failed for another reason. */
export function prospectInTheWay({ failed }: ConditionFailed): number | undefined {
  const rows = failed.map(({ item }) => StoredClientRecord.safeParse(item));
  return rows.find(({ success }) => success)?.data?.prospectId;
}

/** Maps each client id of an existing prospect, in lower case, to the id of this prospect. */
export async function findClientRecords(
  { table }: Pick<ReadContext, "table">,
  caller: Caller,
  clientRecordIds: ReadonlySet<string>,
): Promise<Map<string, number>> {
  const items = await table.batchGet([...clientRecordIds].map((id) => keyOf(caller, id)));
  const rows = items.map((item) => StoredClientRecord.parse(item));
  return new Map(rows.map(({ clientRecordId, prospectId }) => [clientRecordId, prospectId]));
}
