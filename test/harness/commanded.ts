/** Runs a verb for a POST with an idempotency key, commits its plan as the endpoint does, and returns the answer of the plan. */
import type { Caller } from "#shared/auth/caller.ts";
import type { ApiContext } from "#shared/context.ts";
import { carryOut, type Plan } from "#shared/db/plan.ts";
import type { Contract } from "#shared/http/contract.ts";
import { once } from "#shared/http/idempotency.ts";
import type { Request } from "#shared/http/request.ts";

export const commanded = (
  context: ApiContext,
  caller: Caller,
  request: Request,
  verb: (context: ApiContext) => Promise<Plan<unknown>>,
  contract: Pick<Contract, "holdsSecret"> = {},
): ReturnType<typeof once> =>
  once(context, caller, request, contract, async (commit, requestKey) => {
    const plan = await carryOut(() => verb({ ...context, requestKey }), commit);
    return plan.answer;
  });
