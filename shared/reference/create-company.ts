/** Creates a company with its owner and initial statuses. */
import type { StoredUser } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import { firstState } from "#shared/company-index/activity/log.ts";
import type { ApiContext } from "#shared/context.ts";
import { absent } from "#shared/db/expression.ts";
import * as keys from "#shared/db/keys.ts";
import { ApiError, conditionHolds } from "#shared/errors.ts";
import { type Company, type StoredCompany, type StoredStatus, startingStatuses } from "#shared/reference/schema.ts";
import { newUserWrites } from "#shared/reference/user.ts";
import { newValueWrites } from "#shared/reference/values.ts";

export interface NewCompany {
  readonly name: string;
  readonly owner: Pick<StoredUser, "email" | "firstName" | "lastName" | "sub">;
}

/** Throws `conflict` if the owner's e-mail address or token subject belongs to another user. */
export async function createCompany(
  context: ApiContext,
  input: NewCompany,
): Promise<{ company: Company; owner: StoredUser }> {
  const companyId = await context.ids.next();
  const now = iso(context.clock.now());
  const dated = { createdAt: now, updatedAt: now };
  const company: StoredCompany = { type: "company", id: companyId, name: input.name, ...dated };
  const owner: StoredUser = {
    type: "user",
    id: await context.ids.next(),
    companyId,
    ...input.owner,
    role: "owner",
    permissions: [],
    isActive: true,
    version: 1,
    ...dated,
  };
  const statuses: StoredStatus[] = [];
  for (const [index, status] of startingStatuses.entries()) {
    const id = await context.ids.next();
    statuses.push({ type: "status", id, ...status, sortOrder: index + 1, isActive: true, version: 1, ...dated });
  }
  const writes = [
    { put: { ...keys.company(companyId), ...company }, when: absent },
    firstState(companyId),
    ...newUserWrites(owner),
    ...statuses.flatMap((status) => newValueWrites(companyId, status)),
  ];
  if (!(await conditionHolds(context.table.transact(writes)))) {
    throw new ApiError("conflict", "A user with this e-mail address or subject already exists.");
  }
  return { company, owner };
}
