/** Creates, changes and disables the users of a company. */
import type { Caller } from "#shared/auth/caller.ts";
import { iso } from "#shared/clock.ts";
import { namesChange } from "#shared/companies/dictionary.ts";
import { ConditionFailed } from "#shared/db/errors.ts";
import { equals } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import { optimistic } from "#shared/db/optimistic.ts";
import type { Write } from "#shared/db/table.ts";
import { ApiError, notFound } from "#shared/http/problem.ts";
import type { IdentityProvider } from "#shared/identity/provider.ts";
import { newUserWrites, rightsWrite } from "#shared/users/new-user.ts";
import { outOfOffice, requireOwnerFor, requireSoundSelf, stillInOffice } from "#shared/users/rules.ts";
import type { NewUser, StoredUser, UserPatch } from "#shared/users/schema.ts";
import { getUser } from "#shared/users/users.ts";
import type { World } from "#shared/world.ts";

/**
 * The invitation comes before the rows: cut off between the two, the next try finds the same subject or another one, and
 * either is free. Throws conflict when somebody in the service has the address or the subject, whoever it is.
 */
export async function createUser(
  world: World,
  identities: IdentityProvider,
  caller: Caller,
  { sub: named, ...input }: NewUser,
): Promise<StoredUser> {
  requireOwnerFor(caller, input.role);
  if (named !== undefined && !identities.takesSubjects) throw subjectRefused();
  if ((await world.table.get(keys.email(input.email.toLowerCase()))) !== undefined) throw addressTaken();
  const invited = named === undefined ? identities.invite(input.email) : { sub: named };
  const [{ sub }, id] = await Promise.all([invited, world.ids.next()]);
  const now = iso(world.clock.now());
  const user: StoredUser = {
    type: "user",
    id,
    companyId: caller.companyId,
    sub,
    ...input,
    isActive: true,
    version: 1,
    createdAt: now,
    updatedAt: now,
  };
  const writes = [stillInOffice(caller), ...newUserWrites(user), ...namesChange(caller.companyId)];
  await world.commit(writes, user).catch((error: unknown) => {
    if (!(error instanceof ConditionFailed)) throw error;
    throw newUserFault(error, named !== undefined);
  });
  return user;
}

/** Which of the writes failed: the caller's office, the user's row, the place of the subject, the claim on the address. */
function newUserFault({ failed }: ConditionFailed, isSubjectNamed: boolean): ApiError {
  const indexes = failed.map(({ index }) => index);
  if (indexes.includes(0)) return outOfOffice();
  return isSubjectNamed && indexes.includes(2) ? subjectTaken() : addressTaken();
}

/** Only sent fields change; a patch that changes nothing writes nothing. */
export function updateUser(world: World, caller: Caller, id: number, patch: UserPatch): Promise<StoredUser> {
  const work = async (): Promise<StoredUser> => {
    const current = await getUser(world, caller.companyId, id);
    const next = patched(current, patch);
    if (JSON.stringify(current) === JSON.stringify(next)) return current;
    requireOwnerFor(caller, current.role, next.role);
    requireSoundSelf(caller, current, next);
    const written = { ...next, version: current.version + 1, updatedAt: iso(world.clock.now()) };
    const put: Write = { put: { ...keys.user(caller.companyId, id), ...written }, when: isUnchanged(current) };
    // A transaction names each row once, and the caller's own row is under its own condition already.
    const office = id === caller.userId ? [] : [stillInOffice(caller)];
    await world.table.transact([put, ...office, rightsWrite(written), ...namesChange(caller.companyId)]);
    return written;
  };
  const isConflict = ({ failed }: ConditionFailed) => failed.every(({ index }) => index === 0);
  return optimistic(work, isConflict).catch((error: unknown) => {
    throw error instanceof ConditionFailed ? outOfOffice() : error;
  });
}

/** The user cannot sign in any more and keeps what it has; `isActive` brings it back. */
export async function disableUser(world: World, caller: Caller, id: number): Promise<void> {
  const current = await getUser(world, caller.companyId, id);
  if (!current.isActive) throw notFound("user");
  await updateUser(world, caller, id, { isActive: false });
}

const isUnchanged = ({ version }: StoredUser) => equals("version", version);

function patched(current: StoredUser, patch: UserPatch): StoredUser {
  return {
    ...current,
    firstName: patch.firstName ?? current.firstName,
    lastName: patch.lastName ?? current.lastName,
    role: patch.role ?? current.role,
    permissions: patch.permissions ?? current.permissions,
    isActive: patch.isActive ?? current.isActive,
  };
}

const subjectTaken = (): ApiError => new ApiError("conflict", "This subject is in use.");

function subjectRefused(): ApiError {
  const message = "is given by the user pool of this deployment";
  const faults = [{ pointer: "/sub", code: "not_allowed", message }];
  return new ApiError("validation_failed", `sub ${message}.`, { faults });
}

const addressTaken = (): ApiError => new ApiError("conflict", "This e-mail address is in use.");
