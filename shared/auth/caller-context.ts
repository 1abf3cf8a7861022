/**
 * Passes the caller from the authorizer to the functions, in the authorizer's context. API Gateway converts each value of the context to a
 * string, and no value may be empty. You may add fields, but you may not rename or redefine them: API Gateway caches contexts for a minute,
 * so a new deployment still receives contexts that the previous deployment has made.
 */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { PathId } from "#shared/schema.ts";

/** Converts the caller to the context. `rights` contains the role and then the permissions, separated by spaces. */
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

/** Parses the context that `contextOf` has made. Fields that API Gateway has added are ignored. */
export const CallerContext = z.pipe(
  z.object({ companyId: PathId, userId: PathId, rights: Rights }),
  z.transform(({ rights, ...ids }): Caller => ({ ...ids, ...rights })),
);
