/** Reads the caller that the gateway's authorizer has verified: may they call this endpoint at all? */
import type { MiddlewareObj } from "@middy/core";
import * as z from "zod/mini";
import { type Caller, isAdmin, may } from "#shared/auth/caller.ts";
import { CallerContext } from "#shared/auth/caller-context.ts";
import { ApiError } from "#shared/errors.ts";
import type { Allow } from "#shared/http/contract.ts";
import type { ApiEvent } from "#shared/http/event.ts";
import { addLogContext } from "#shared/log.ts";

export const authorization = (allow: Allow): MiddlewareObj<ApiEvent> => ({
  before: ({ event }) => {
    if (allow === "public") return;
    const caller = callerOf(event);
    addLogContext({ companyId: caller.companyId, userId: caller.userId });
    if (!isAllowed(caller, allow))
      throw new ApiError("permission_denied", "Your role or permissions do not allow this.");
    event.caller = caller;
  },
});

/** A request that passed no authorizer is a fault of the deployment, never a caller's. */
function callerOf({ requestContext }: ApiEvent): Caller {
  const handed = z.safeParse(CallerContext, requestContext.authorizer);
  if (!handed.success) throw new ApiError("internal", "the authorizer handed no caller", { cause: handed.error });
  return handed.data;
}

function isAllowed(caller: Caller, allow: Allow): boolean {
  if (allow === "public" || allow === "everyone") return true;
  return allow === "admin" ? isAdmin(caller) : may(caller, allow);
}
