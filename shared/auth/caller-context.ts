/** How the authorizer hands the caller to the functions: API Gateway passes text, numbers and booleans, and turns them all into text. */
import * as z from "zod/mini";
import { Permission, Role } from "#shared/auth/user-schema.ts";
import { Id, PathId } from "#shared/schema.ts";

const Caller = z.object({ companyId: Id, userId: Id, role: Role, permissions: z.array(Permission) });

/**
 * The gateway keeps a context for a minute, so functions of a new version meet contexts of the old one: fields may be added, not
 * changed. No field is ever empty.
 */
export const CallerContext = z.codec(
  z.object({
    companyId: z.string(),
    userId: z.string(),
    /** The role, then the permissions, with blanks between them. */
    rights: z.string(),
  }),
  Caller,
  {
    decode: ({ companyId, userId, rights }, { issues }) => {
      const [role, ...permissions] = rights.split(" ");
      const ids = z.safeParse(z.object({ companyId: PathId, userId: PathId }), { companyId, userId });
      const granted = z.safeParse(z.object({ role: Role, permissions: z.array(Permission) }), { role, permissions });
      if (ids.success && granted.success) return { ...ids.data, ...granted.data };
      issues.push({ code: "custom", message: "is no caller", input: { companyId, userId, rights } });
      return z.NEVER;
    },
    encode: ({ companyId, userId, role, permissions }) => ({
      companyId: `${companyId}`,
      userId: `${userId}`,
      rights: [role, ...permissions].join(" "),
    }),
  },
);
