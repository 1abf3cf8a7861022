/** The authorizers of the API. An authorizer calls a function, evaluates the policy that the function returns, and caches the policy. */
import * as z from "zod/mini";
import type { GatewayError } from "./answers.ts";
import type { Api, ApiAuthorizer, ApiMethod } from "./api-definition.ts";
import { InvocationError } from "./environment.ts";
import { LocalError } from "./error.ts";
import type { LocalFunction } from "./function.ts";
import { nameOfArn } from "./names.ts";
import type { FunctionSpec } from "./stack.ts";

export interface Authorizers {
  /** Undefined means that the method needs no authorizer. */
  authorize(
    method: ApiMethod,
    headers: ReadonlyMap<string, readonly string[]>,
    methodArn: string,
  ): Promise<AuthorizerContext | GatewayError | undefined>;
  /** Empties the caches of all authorizers. */
  flush(): void;
}

export function createAuthorizers(api: Api, functions: ReadonlyMap<string, LocalFunction>): Authorizers {
  const byName = new Map<string, Authorizer>();
  for (const [name, spec] of api.authorizers) {
    const { found, kind } = functionAt(spec.uri, functions);
    if (found === undefined || kind !== "invocations") {
      throw new LocalError(`securitySchemes.${name}: authorizerUri is not a function of the template`);
    }
    byName.set(name, createAuthorizer(spec, found));
  }
  return {
    authorize: async ({ authorizer: name }, headers, methodArn) => {
      if (name === undefined) return undefined;
      return byName.get(name)?.authorize(headers, methodArn) ?? "AUTHORIZER_CONFIGURATION_ERROR";
    },
    flush() {
      for (const authorizer of byName.values()) authorizer.flush();
    },
  };
}

const OneOrMany = z.pipe(
  z.union([z.string(), z.array(z.string())]),
  z.transform((value) => (typeof value === "string" ? [value] : value)),
);
const Statement = z.strictObject({
  Sid: z.optional(z.string()),
  Effect: z.enum(["Allow", "Deny"]),
  Action: OneOrMany,
  Resource: OneOrMany,
});
const Statements = z.pipe(
  z.union([Statement, z.array(Statement)]),
  z.transform((value) => (Array.isArray(value) ? value : [value])),
);

/** A policy. Conditions are not supported, so a policy with a condition counts as malformed. */
const Policy = z.strictObject({ Version: z.literal("2012-10-17"), Statement: Statements });
type Policy = z.infer<typeof Policy>;

/** The context of the authorizer, as a function finds it in its event. Values that the authorizer sets are text. */
export type AuthorizerContext = Readonly<Record<string, string | number>>;

interface Authorizer {
  authorize(
    headers: ReadonlyMap<string, readonly string[]>,
    methodArn: string,
  ): Promise<AuthorizerContext | GatewayError>;
  /** Empties the cache, as `aws apigateway flush-stage-authorizers-cache` does. */
  flush(): void;
}

/** The answer of an authorizer function. API Gateway refuses objects, lists and null in the context. */
const Answer = z.object({
  principalId: z.string().check(z.minLength(1)),
  policyDocument: Policy,
  context: z.optional(z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))),
});
type Answer = z.infer<typeof Answer>;

/** An authorizer function causes the answer 401 by an error with this message. Any other error becomes a server error. */
const UNAUTHORIZED = "Unauthorized";

/** The maximum number of tokens in the cache. The oldest token is evicted first. */
const CACHED_TOKENS = 10_000;

interface Cached {
  readonly answer: Answer;
  /** The end of validity in milliseconds since the epoch. */
  readonly until: number;
}

/**
 * A TOKEN authorizer that behaves as in API Gateway. It checks the header against the pattern, asks the function for a policy, and caches
 * the policy of a token for all methods of the API.
 */
export function createAuthorizer(
  { header, validation, ttlSeconds }: Pick<ApiAuthorizer, "header" | "validation" | "ttlSeconds">,
  run: Pick<LocalFunction, "invoke">,
  now: () => number = Date.now,
): Authorizer {
  const pattern = validation === undefined ? undefined : new RegExp(validation);
  const cached = new Map<string, Cached>();

  async function answerFor(token: string, methodArn: string): Promise<Answer | GatewayError> {
    const known = cached.get(token);
    if (known !== undefined && known.until > now()) return known.answer;
    cached.delete(token);
    const answer = await ask(run, token, methodArn);
    if (typeof answer !== "string" && ttlSeconds > 0) {
      for (const oldest of cached.keys()) {
        if (cached.size < CACHED_TOKENS) break;
        cached.delete(oldest);
      }
      cached.set(token, { answer, until: now() + ttlSeconds * 1_000 });
    }
    return answer;
  }

  return {
    flush: () => cached.clear(),
    async authorize(headers, methodArn) {
      // API Gateway does not document which of several headers it uses. Join the headers, so that they match no pattern for one token.
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

/** Calls the authorizer function. The caller of `ask` caches policies but no errors, as API Gateway does. */
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

/** Whether the policy allows the action. As in IAM, the action needs an Allow, and a Deny overrides every Allow. */
function allows(policy: Policy, action: string, resource: string): boolean {
  const about = policy.Statement.filter(
    ({ Action, Resource }) => matchesAny(Action, action) && matchesAny(Resource, resource),
  );
  return about.some(({ Effect }) => Effect === "Allow") && about.every(({ Effect }) => Effect === "Allow");
}

const matchesAny = (patterns: readonly string[], text: string): boolean =>
  patterns.some((pattern) => wildcards(pattern).test(text));

/** Returns an expression in which `*` matches any text, including slashes, and `?` matches any character. */
function wildcards(pattern: string): RegExp {
  const escaped = pattern.replaceAll(/[.+^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replaceAll("*", ".*").replaceAll("?", ".")}$`);
}

interface Addressed {
  /** The function, or undefined if the template has no such function. */
  readonly found: LocalFunction | undefined;
  readonly kind: string | undefined;
}

/**
 * Returns the function of an integration URI. The URI has the form `…:lambda:path/2015-03-31/functions/<arn>/invocations`, or another form
 * for streamed answers.
 */
export function functionAt(uri: string, functions: ReadonlyMap<string, LocalFunction>): Addressed {
  const [, arn, kind] = /\/functions\/([^/]+)\/(invocations|response-streaming-invocations)$/.exec(uri) ?? [];
  return { found: functions.get(nameOfArn(arn ?? "")), kind };
}

/** Whether the API calls this function, for a method or as an authorizer. All other functions are started by events. */
export function servesRequests(spec: FunctionSpec, { authorizers, methods }: Api): boolean {
  const addresses = [
    ...[...authorizers.values()].map(({ uri }) => uri),
    ...methods.flatMap(({ integration }) => (integration.type === "aws_proxy" ? [integration.uri] : [])),
  ];
  return addresses.some((uri) => uri.includes(`:${spec.name}/`));
}
