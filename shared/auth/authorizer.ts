/** The Lambda authorizer: verifies the Authorization header and returns a policy with the caller's rights. API Gateway caches policies. */
import type { APIGatewayAuthorizerResult, Context } from "aws-lambda";
import * as z from "zod/mini";
import { type Caller, contextOf } from "#shared/auth/caller.ts";
import { REFUSED, throttleKey, throttleSlot } from "#shared/auth/throttle-key.ts";
import { type Refusal, TokenRefused } from "#shared/auth/token.ts";
import { setting } from "#shared/config.ts";
import { type ApiContext, apiContext } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { ApiError } from "#shared/errors.ts";
import { errorFields, log, withLogContext } from "#shared/log.ts";

const TokenEvent = z.object({ type: z.literal("TOKEN"), authorizationToken: z.string(), methodArn: z.string() });

/** API Gateway answers 401 if the authorizer throws an error with exactly this message. After other errors, it reports a server error. */
const UNAUTHORIZED = "Unauthorized";

/** `authenticate` returns the caller for an Authorization header, or throws `unauthenticated`. */
export const authorizer =
  (authenticate: (context: ApiContext, authorization: string) => Promise<Caller>) =>
  (event: unknown, { awsRequestId }: Pick<Context, "awsRequestId">): Promise<APIGatewayAuthorizerResult> =>
    withLogContext({ authorizationId: awsRequestId }, async () => {
      const { authorizationToken, methodArn } = TokenEvent.parse(event);
      try {
        const { result: caller, usage } = await metered(() => authenticate(apiContext(), authorizationToken));
        // The level is debug, because this line would be a tenth of all log bytes, and the access log contains the caller too.
        log.debug("authorized", { companyId: caller.companyId, userId: caller.userId, ...usage });
        return authorization(caller, methodArn);
      } catch (error) {
        if (!(error instanceof TokenRefused)) throw gatewayError(error);
        log.info("unauthorized", { reason: error.reason });
        return refusal(error.reason, methodArn);
      }
    });

/** The policy allows all endpoints, because API Gateway uses one cached policy for all. Each endpoint checks the caller's rights itself. */
const authorization = (caller: Caller, methodArn: string): APIGatewayAuthorizerResult => ({
  principalId: `${caller.companyId}/${caller.userId}`,
  policyDocument: policy("Allow", methodArn),
  context: contextOf(caller),
  usageIdentifierKey: throttleKey(setting("THROTTLE_KEY_PREFIX"), throttleSlot(caller.companyId)),
});

/** Refuses a token. API Gateway caches this policy, so the reason must depend on the token alone. A disabled user gets an error instead. */
const refusal = (reason: Refusal, methodArn: string): APIGatewayAuthorizerResult => ({
  principalId: "refused",
  policyDocument: policy("Deny", methodArn),
  // API Gateway puts these values into its response (infra/stack/gateway.ts), and `challenge` into the header `WWW-Authenticate`.
  context: { reason, challenge: `Bearer error="invalid_token", error_description="${reason}"` },
  usageIdentifierKey: throttleKey(setting("THROTTLE_KEY_PREFIX"), REFUSED),
});

function policy(Effect: "Allow" | "Deny", methodArn: string): APIGatewayAuthorizerResult["policyDocument"] {
  const [api, stage] = methodArn.split("/");
  return {
    Version: "2012-10-17",
    Statement: [{ Action: "execute-api:Invoke", Effect, Resource: `${api}/${stage}/*` }],
  };
}

/** Converts `error` to an error for API Gateway, and logs the reason, but never the token. API Gateway caches policies, but no errors. */
function gatewayError(error: unknown): Error {
  if (error instanceof ApiError && error.code === "unauthenticated") {
    log.info("unauthorized", { reason: error.message });
    const refusal = new Error(UNAUTHORIZED);
    // Lambda logs the stack of every error, but a refused token is a normal event.
    refusal.stack = String(refusal);
    return refusal;
  }
  log.error("authorization failed", errorFields(error instanceof ApiError ? (error.cause ?? error) : error));
  return new Error("The caller cannot be verified at the moment.");
}
