/**
 * The authorizer of API Gateway. It verifies the Authorization header and returns an access policy with the caller's identity and rights.
 */
import type { Context } from "aws-lambda";
import * as z from "zod/mini";
import { type Caller, CallerContext } from "#shared/auth/caller.ts";
import { type ApiContext, apiContext } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { ApiError } from "#shared/errors.ts";
import { errorFields, log, withLogContext } from "#shared/log.ts";

const TokenEvent = z.object({ type: z.literal("TOKEN"), authorizationToken: z.string(), methodArn: z.string() });

/** API Gateway answers 401 only for an error with exactly this message, and a server error for any other error. */
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

/** Returns the Lambda handler. `authenticate` returns the caller for an Authorization header, or throws `unauthenticated`. */
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
        throw gatewayError(error);
      }
    });

/**
 * The policy allows all endpoints, because API Gateway caches it by token and applies it to every endpoint. Each endpoint checks role and
 * permissions itself.
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

/** Logs the reason, but never the token. */
function gatewayError(error: unknown): Error {
  if (error instanceof ApiError && error.code === "unauthenticated") {
    log.info("unauthorized", { reason: error.message });
    const refusal = new Error(UNAUTHORIZED);
    // Remove the stack, because Lambda logs it for every thrown error and a refused token is a normal event.
    refusal.stack = String(refusal);
    return refusal;
  }
  log.error("authorization failed", errorFields(error instanceof ApiError ? (error.cause ?? error) : error));
  return new Error("The caller cannot be verified at the moment.");
}
