/** Decides whether a request may call the API: gets a policy from the authorizer function, and caches it. */
import { LRUCache } from "lru-cache";
import * as z from "zod/mini";
import { InvocationError } from "../runtime/environment.ts";
import type { LocalFunction } from "../runtime/function.ts";
import { LocalError } from "../servers/error.ts";
import type { Api, ApiAuthorizer } from "../template/api-definition.ts";
import { nameOfArn, patternOf } from "../template/names.ts";
import type { GatewayError } from "./answers.ts";
import { headerValues, type RawRequest } from "./request.ts";

export function authorizerOf({ authorizer }: Api, functions: ReadonlyMap<string, LocalFunction>) {
  const { found, kind } = functionAt(authorizer.uri, functions);
  if (found === undefined || kind !== "invocations") {
    throw new LocalError("securitySchemes: authorizerUri is not a function of the template");
  }
  return createAuthorizer(authorizer, found);
}

/** The only form of policy that the local service evaluates. It refuses policies with several statements or with conditions. */
const Statement = z.strictObject({
  Effect: z.enum(["Allow", "Deny"]),
  Action: z.literal("execute-api:Invoke"),
  /** In this pattern, `*` matches any text including slashes. */
  Resource: z.string(),
});
const Policy = z.strictObject({ Version: z.literal("2012-10-17"), Statement: z.tuple([Statement]) });

/** The fields that an authorizer passes to functions. API Gateway converts the values that the authorizer function returned to strings. */
export type AuthorizerContext = Readonly<Record<string, string | number>>;

interface Authorized {
  readonly context: AuthorizerContext;
  /** The API key for which API Gateway counts the request. The usage plan of the key limits the rate of requests. */
  readonly apiKey: string | undefined;
}

/** The policy denies the request. The error response to the client may contain values of `context`. */
export class Denied {
  readonly context: AuthorizerContext;
  constructor(context: AuthorizerContext) {
    this.context = context;
  }
}

/** The result of an authorizer function. `context` must not contain objects, lists or null, because API Gateway refuses them. */
const Answer = z.object({
  principalId: z.string().check(z.minLength(1)),
  policyDocument: Policy,
  context: z.optional(z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))),
  usageIdentifierKey: z.optional(z.string()),
});
type Answer = z.infer<typeof Answer>;

/** If the authorizer function throws this message, API Gateway responds with 401. After any other error, it responds with a 5xx. */
const UNAUTHORIZED = "Unauthorized";

/** When this many tokens are cached, a new one evicts the least recently used one. */
const CACHED_TOKENS = 10_000;

interface Cached {
  readonly answer: Answer;
  /** The time at which the cached result expires, in milliseconds since 1970. */
  readonly until: number;
}

/** Works like API Gateway's authorizer of the type TOKEN. A cached policy is valid for all methods of the API. */
export function createAuthorizer(
  { header, validation, ttlSeconds }: Pick<ApiAuthorizer, "header" | "validation" | "ttlSeconds">,
  run: Pick<LocalFunction, "invoke">,
  now: () => number = Date.now,
) {
  const pattern = validation === undefined ? undefined : new RegExp(validation);
  let cached = new LRUCache<string, Cached>({ max: CACHED_TOKENS });

  async function answerFor(token: string, methodArn: string): Promise<Answer | GatewayError> {
    // A `flush` during the call of the function replaces the cache, because the function's answer may then be outdated. The answer goes to
    // the old cache `into`, which nobody reads any more.
    const into = cached;
    const known = cached.get(token);
    if (known !== undefined && known.until > now()) return known.answer;
    const answer = await ask(run, token, methodArn);
    if (typeof answer !== "string") into.set(token, { answer, until: now() + ttlSeconds * 1_000 });
    return answer;
  }

  return {
    /** Empties the cache of policies, like the command `aws apigateway flush-stage-authorizers-cache`. */
    flush(): void {
      cached = new LRUCache({ max: CACHED_TOKENS });
    },
    async authorize(headers: RawRequest["headers"], methodArn: string): Promise<Authorized | GatewayError | Denied> {
      // AWS does not document which value API Gateway uses if a request has several Authorization headers. Here the values are joined with
      // commas. The joined value does not match the pattern, so the request is refused.
      const token = headerValues(headers, header).join(", ");
      if (token === "" || pattern?.test(token) === false) return "UNAUTHORIZED";
      const started = now();
      const answer = await answerFor(token, methodArn);
      if (typeof answer === "string") return answer;
      const texts = Object.entries(answer.context ?? {}).map(([name, value]) => [name, `${value}`]);
      const context = {
        ...Object.fromEntries(texts),
        principalId: answer.principalId,
        integrationLatency: now() - started,
      };
      const [{ Effect, Resource }] = answer.policyDocument.Statement;
      return Effect === "Allow" && patternOf(Resource).test(methodArn)
        ? { context, apiKey: answer.usageIdentifierKey }
        : new Denied(context);
    },
  };
}

/** Gets a policy from the authorizer function. A failure is not cached, so the next request calls the function again. */
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

/** Returns the function in a URI such as `…:lambda:path/2015-03-31/functions/<arn>/invocations`. `kind` is the last part of the URI. */
export function functionAt(uri: string, functions: ReadonlyMap<string, LocalFunction>) {
  const [, arn, kind] = /\/functions\/([^/]+)\/(invocations|response-streaming-invocations)$/.exec(uri) ?? [];
  return { found: functions.get(nameOfArn(arn ?? "")), kind };
}
