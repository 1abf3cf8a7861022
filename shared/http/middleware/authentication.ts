/** Who is calling, and may they call this endpoint at all? */
import type { MiddlewareObj } from "@middy/core";
import { type Caller, isAdmin, may } from "#shared/auth/caller.ts";
import { lookUpCaller } from "#shared/auth/directory.ts";
import { verifiedSubject } from "#shared/auth/token.ts";
import type { Allow } from "#shared/http/contract.ts";
import type { ApiEvent } from "#shared/http/event.ts";
import { ApiError } from "#shared/http/problem.ts";
import { addLogContext } from "#shared/log.ts";
import { world } from "#shared/world.ts";

export const authentication = (allow: Allow): MiddlewareObj<ApiEvent> => ({
  before: async ({ event }) => {
    if (allow === "public") return;
    const sub = await verifiedSubject(event.request.headers.get("authorization") ?? []);
    const caller = await lookUpCaller(world(), sub);
    addLogContext({ companyId: caller.companyId, userId: caller.userId });
    if (!isAllowed(caller, allow))
      throw new ApiError("permission_denied", "Your role or permissions do not allow this.");
    event.caller = caller;
  },
});

function isAllowed(caller: Caller, allow: Allow): boolean {
  if (allow === "public" || allow === "everyone") return true;
  return allow === "admin" ? isAdmin(caller) : may(caller, allow);
}
