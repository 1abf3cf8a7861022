/**
 * Passes the caller from the authorizer to the functions, in the authorizer's context. API Gateway turns each value of the context into
 * text, and no value may be empty. Add fields if necessary, but never change one. The gateway caches contexts for a minute, so a new
 * deployment receives contexts of the previous one.
 */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { PathId } from "#shared/schema.ts";

/** `rights` is the role and then the permissions, separated by spaces. */
export const contextOf = ({ companyId, userId, role, permissions }: Caller) => ({
  companyId: `${companyId}`,
  userId: `${userId}`,
  rights: [role, ...permissions].join(" "),
});

const Rights = z.pipe(
  z.pipe(
    z.string(),
    z.transform((rights) => {
      const [role, ...permissions] = rights.split(" ");
      return { role, permissions };
    }),
  ),
  z.object({ role: Role, permissions: z.array(Permission) }),
);

/** Parses the result of `contextOf`. The gateway adds other fields to it. */
export const CallerContext = z.pipe(
  z.object({ companyId: PathId, userId: PathId, rights: Rights }),
  z.transform(({ rights, ...ids }): Caller => ({ ...ids, ...rights })),
);
