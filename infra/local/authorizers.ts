/** The authorizers of the API, and the one that each method needs. */
import type { Api, ApiMethod } from "./api-definition.ts";
import { type Authorizer, type AuthorizerContext, createAuthorizer } from "./authorizer.ts";
import { LocalError } from "./error.ts";
import type { LocalFunction } from "./function.ts";
import { functionAt } from "./function-address.ts";
import type { GatewayError } from "./gateway-answers.ts";

export interface Authorizers {
  /** Undefined: the method needs none. */
  authorize(
    method: ApiMethod,
    headers: ReadonlyMap<string, readonly string[]>,
    methodArn: string,
  ): Promise<AuthorizerContext | GatewayError | undefined>;
  /** Forgets what all of them have said. */
  flush(): void;
}

export function createAuthorizers(api: Api, functions: ReadonlyMap<string, LocalFunction>): Authorizers {
  const byName = new Map<string, Authorizer>();
  for (const [name, spec] of api.authorizers) {
    const { found, kind } = functionAt(spec.uri, functions);
    if (found === undefined || kind !== "invocations") {
      throw new LocalError(`securitySchemes.${name}: authorizerUri names no function of the template`);
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
