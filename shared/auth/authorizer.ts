/** The way to make the gateway's authorizer: the Authorization header in, a policy with the caller out. */
import type { Context } from "aws-lambda";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { CallerContext } from "#shared/auth/caller-context.ts";
import { type ApiContext, apiContext } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { ApiError } from "#shared/errors.ts";
import { errorFields, log, withLogContext } from "#shared/log.ts";

/** An authorizer of the type TOKEN is given no more. */
const TokenEvent = z.object({ type: z.literal("TOKEN"), authorizationToken: z.string(), methodArn: z.string() });

/** API Gateway answers 401 for an error with exactly this message, and a server error for any other. */
const UNAUTHORIZED = "Unauthorized";

export interface Authorization {
  readonly principalId: string;
  readonly policyDocument: {
    readonly Version: "2012-10-17";
    readonly Statement: readonly [
      { readonly Action: "execute-api:Invoke"; readonly Effect: "Allow"; readonly Resource: string },
    ];
  };
  readonly context: z.input<typeof CallerContext>;
}

/** `authenticate` gives the caller behind an Authorization header, or throws `unauthenticated`. */
export const authorizer =
  (authenticate: (context: ApiContext, authorization: string) => Promise<Caller>) =>
  (event: unknown, { awsRequestId }: Pick<Context, "awsRequestId">): Promise<Authorization> =>
    withLogContext({ authorizationId: awsRequestId }, async () => {
      try {
        const { authorizationToken, methodArn } = TokenEvent.parse(event);
        const { result: caller, usage } = await metered(() => authenticate(apiContext(), authorizationToken));
        log.info("authorized", { companyId: caller.companyId, userId: caller.userId, ...usage });
        return authorization(caller, methodArn);
      } catch (error) {
        throw told(error);
      }
    });

/**
 * API Gateway keeps the policy under the token and applies it to every method, so it has to hold for all of them. Roles and
 * permissions are checked where the contract of an endpoint names them.
 */
function authorization(caller: Caller, methodArn: string): Authorization {
  const [api, stage] = methodArn.split("/");
  const Resource = `${api}/${stage}/*`;
  return {
    principalId: `${caller.companyId}/${caller.userId}`,
    policyDocument: {
      Version: "2012-10-17",
      Statement: [{ Action: "execute-api:Invoke", Effect: "Allow", Resource }],
    },
    context: z.encode(CallerContext, { ...caller, permissions: [...caller.permissions] }),
  };
}

/** What API Gateway is to see of an error. The reason is logged; a token never is. */
function told(error: unknown): Error {
  if (error instanceof ApiError && error.code === "unauthenticated") {
    log.info("unauthorized", { reason: error.message });
    const refusal = new Error(UNAUTHORIZED);
    // Lambda logs every thrown error with its stack. A refused token is a normal event: leave out the stack.
    refusal.stack = String(refusal);
    return refusal;
  }
  log.error("authorization failed", errorFields(error instanceof ApiError ? (error.cause ?? error) : error));
  return new Error("The caller cannot be verified at the moment.");
}
