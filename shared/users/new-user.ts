/** The rows that make a user: the directory entry, the place of the token subject and the claim on the e-mail address. */
import { absent } from "#shared/db/expression.ts";
import { keys } from "#shared/db/keys.ts";
import type { Write } from "#shared/db/table.ts";
import type { StoredUser } from "#shared/users/schema.ts";

/** One user per e-mail address and per subject in the whole service. */
export function newUserWrites(user: StoredUser): Write[] {
  const { companyId, id: userId, sub, email } = user;
  return [
    { put: { ...keys.user(companyId, userId), ...user }, when: absent },
    { put: { ...keys.identity(sub), type: "identity", companyId, userId }, when: absent },
    { put: { ...keys.email(email.toLowerCase()), type: "email", companyId, userId }, when: absent },
  ];
}
