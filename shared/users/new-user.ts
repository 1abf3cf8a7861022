/** The rows that make a user: the directory entry, the place and rights of the token subject, the claim on the e-mail address. */
import { absent } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Write } from "#shared/db/table.ts";
import { type StoredUser, UserRights } from "#shared/users/schema.ts";

/** One user per e-mail address and per subject in the whole service. */
export function newUserWrites(user: StoredUser): Write[] {
  const { companyId, id: userId, sub, email } = user;
  return [
    { put: { ...keys.user(companyId, userId), ...user }, when: absent },
    {
      put: { ...keys.identity(sub), type: "identity", companyId, userId, rights: UserRights.parse(user) },
      when: absent,
    },
    { put: { ...keys.email(email.toLowerCase()), type: "email", companyId, userId }, when: absent },
  ];
}

/** Goes into the transaction of every change of a user: what the next sign-in goes by. */
export const rightsWrite = ({ sub, ...user }: StoredUser): Write => ({
  update: keys.identity(sub),
  change: { set: { rights: UserRights.parse(user) } },
});
