/** The functions that API Gateway calls while a request waits, by the addresses in its definition. */
import type { Api } from "./api-definition.ts";
import type { LocalFunction } from "./function.ts";
import { nameOfArn } from "./names.ts";
import type { FunctionSpec } from "./stack.ts";

export interface Addressed {
  /** Undefined: the address names no function of the template. */
  readonly found: LocalFunction | undefined;
  readonly kind: string | undefined;
}

/** `…:lambda:path/2015-03-31/functions/<arn>/invocations`, and likewise for streamed answers. */
export function functionAt(uri: string, functions: ReadonlyMap<string, LocalFunction>): Addressed {
  const [, arn, kind] = /\/functions\/([^/]+)\/(invocations|response-streaming-invocations)$/.exec(uri) ?? [];
  return { found: functions.get(nameOfArn(arn ?? "")), kind };
}

/** Whether a request waits for this function; the others are started by events. */
export function servesRequests(spec: FunctionSpec, { authorizers, methods }: Api): boolean {
  const addresses = [
    ...[...authorizers.values()].map(({ uri }) => uri),
    ...methods.flatMap(({ integration }) => (integration.type === "aws_proxy" ? [integration.uri] : [])),
  ];
  return addresses.some((uri) => uri.includes(`:${spec.name}/`));
}
