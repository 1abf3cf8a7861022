/**
 * A TOKEN authorizer as API Gateway runs it: the header is checked by the pattern, the function is asked for a policy, and the policy is
 * kept under the token for all methods of the API.
 */
import * as z from "zod/mini";
import type { ApiAuthorizer } from "./api-definition.ts";
import { InvocationError } from "./environment.ts";
import type { LocalFunction } from "./function.ts";
import type { GatewayError } from "./gateway-answers.ts";
import { allows, Policy } from "./policy.ts";

/** What a function is handed beside the request. Every value of the authorizer's own is text. */
export type AuthorizerContext = Readonly<Record<string, string | number>>;

export interface Authorizer {
  authorize(
    headers: ReadonlyMap<string, readonly string[]>,
    methodArn: string,
  ): Promise<AuthorizerContext | GatewayError>;
  /** As `aws apigateway flush-stage-authorizers-cache` does. */
  flush(): void;
}

/** API Gateway refuses objects, lists and null as values of a context. */
const Answer = z.object({
  principalId: z.string().check(z.minLength(1)),
  policyDocument: Policy,
  context: z.optional(z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))),
});
type Answer = z.infer<typeof Answer>;

/** The message by which a function says 401; any other error of it is the service's own. */
const UNAUTHORIZED = "Unauthorized";

/** Tokens whose policies are kept at once; the one that was kept first makes room. */
const KEPT_TOKENS = 10_000;

interface Kept {
  readonly answer: Answer;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

export function createAuthorizer(
  { header, validation, ttlSeconds }: Pick<ApiAuthorizer, "header" | "validation" | "ttlSeconds">,
  run: Pick<LocalFunction, "invoke">,
  now: () => number = Date.now,
): Authorizer {
  const pattern = validation === undefined ? undefined : new RegExp(validation);
  const kept = new Map<string, Kept>();

  async function answerFor(token: string, methodArn: string): Promise<Answer | GatewayError> {
    const known = kept.get(token);
    if (known !== undefined && known.until > now()) return known.answer;
    kept.delete(token);
    const answer = await ask(run, token, methodArn);
    if (typeof answer !== "string" && ttlSeconds > 0) {
      for (const oldest of kept.keys()) {
        if (kept.size < KEPT_TOKENS) break;
        kept.delete(oldest);
      }
      kept.set(token, { answer, until: now() + ttlSeconds * 1_000 });
    }
    return answer;
  }

  return {
    flush: () => kept.clear(),
    async authorize(headers, methodArn) {
      // Which of several headers API Gateway takes is not documented. Together they match no pattern for one token.
      const token = valuesOf(headers, header).join(", ");
      if (token === "" || pattern?.test(token) === false) return "UNAUTHORIZED";
      const started = now();
      const answer = await answerFor(token, methodArn);
      if (typeof answer === "string") return answer;
      if (!allows(answer.policyDocument, "execute-api:Invoke", methodArn)) return "ACCESS_DENIED";
      const texts = Object.entries(answer.context ?? {}).map(([name, value]) => [name, `${value}`]);
      return { ...Object.fromEntries(texts), principalId: answer.principalId, integrationLatency: now() - started };
    },
  };
}

/** An answer is kept; a refusal by an error and a failure are not. */
async function ask(
  run: Pick<LocalFunction, "invoke">,
  authorizationToken: string,
  methodArn: string,
): Promise<Answer | GatewayError> {
  try {
    const answer = await run.invoke({ type: "TOKEN", authorizationToken, methodArn });
    const parsed = z.safeParse(Answer, JSON.parse(answer));
    return parsed.success ? parsed.data : "AUTHORIZER_CONFIGURATION_ERROR";
  } catch (error) {
    return error instanceof InvocationError && error.message === UNAUTHORIZED ? "UNAUTHORIZED" : "AUTHORIZER_FAILURE";
  }
}

function valuesOf(headers: ReadonlyMap<string, readonly string[]>, name: string): readonly string[] {
  for (const [key, values] of headers) if (key.toLowerCase() === name) return values;
  return [];
}
