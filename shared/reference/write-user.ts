/** Changes and disables the users of a company. */
import type { Caller } from "#shared/auth/caller.ts";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import { iso } from "#shared/clock.ts";
import type { ApiContext } from "#shared/context.ts";
import { equals } from "#shared/db/expression.ts";
import type { Write } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import { ConditionFailed, notFound } from "#shared/errors.ts";
import { namesChange } from "#shared/reference/dictionary.ts";
import { isStanding } from "#shared/reference/invitation.ts";
import { rightsWrite } from "#shared/reference/new-user.ts";
import type { UserPatch } from "#shared/reference/user.ts";
import { outOfOffice, requireOwnerFor, requireSoundSelf, stillInOffice } from "#shared/reference/user-rules.ts";
import { getUser } from "#shared/reference/users.ts";

/** Only sent fields change; a patch that changes nothing writes nothing. */
export function updateUser(context: ApiContext, caller: Caller, id: number, patch: UserPatch): Promise<StoredUser> {
  const work = async (): Promise<StoredUser> => {
    const current = await getUser(context, caller.companyId, id);
    const next = patched(current, patch);
    if (JSON.stringify(current) === JSON.stringify(next)) return current;
    requireOwnerFor(caller, current.role, next.role);
    requireSoundSelf(caller, current, next);
    const written = { ...next, version: current.version + 1, updatedAt: iso(context.clock.now()) };
    const put: Write = { put: { ...keys.user(caller.companyId, id), ...written }, when: isUnchanged(current) };
    // A transaction names each row once, and the caller's own row is under its own condition already.
    const office = id === caller.userId ? [] : [stillInOffice(caller)];
    // A user whose invitation has ended has no rights beside a subject, which may be another user's by now.
    const rights = isStanding(current, context.clock.now()) ? [rightsWrite(written)] : [];
    await context.table.transact([put, ...rights, ...office, ...namesChange(caller.companyId)]);
    return written;
  };
  const isConflict = ({ failed }: ConditionFailed) =>
    failed.every(({ index, item }) => index === 0 || item?.type === "identity");
  return optimistic(work, isConflict).catch((error: unknown) => {
    throw error instanceof ConditionFailed ? outOfOffice() : error;
  });
}

/** The user cannot sign in any more and keeps what it has; `isActive` brings it back. */
export async function disableUser(context: ApiContext, caller: Caller, id: number): Promise<void> {
  const current = await getUser(context, caller.companyId, id);
  if (!current.isActive) throw notFound("user");
  await updateUser(context, caller, id, { isActive: false });
}

const isUnchanged = ({ version }: StoredUser) => equals("version", version);

export function patched(current: StoredUser, patch: UserPatch): StoredUser {
  return {
    ...current,
    firstName: patch.firstName ?? current.firstName,
    lastName: patch.lastName ?? current.lastName,
    role: patch.role ?? current.role,
    permissions: patch.permissions ?? current.permissions,
    isActive: patch.isActive ?? current.isActive,
  };
}
