/** Converts API Gateway's event to a request, with header names in lower case. */
import type { APIGatewayProxyEvent } from "aws-lambda";
import type { Caller } from "#shared/auth/caller.ts";

export interface Request {
  readonly requestId: string;
  readonly method: string;
  /** The path begins with the stage of API Gateway, except on the console's address and on a custom domain. */
  readonly path: string;
  readonly resource: string;
  /** The stage on API Gateway's own host name, otherwise empty. */
  readonly prefix: string;
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly pathParameters: Readonly<Record<string, string>>;
  readonly queryParameters: ReadonlyMap<string, readonly string[]>;
  readonly body: string;
}

/** API Gateway's event with the fields that middlewares add. */
export interface ApiEvent extends APIGatewayProxyEvent {
  request: Request;
  /** Absent until the rights of the caller are checked. */
  caller?: Caller;
  /** The parsed body, before it is validated by a schema. */
  payload?: unknown;
}

/** CloudFront adds this header at the console's address, where paths have no stage. If a client sends it, only its own response changes. */
const FORWARDED_PREFIX = "x-forwarded-prefix";

export function readRequest(event: APIGatewayProxyEvent): Request {
  const headers = multiMap(event.multiValueHeaders, (name) => name.toLowerCase());
  const sent = event.requestContext.path;
  const stage = prefixOf(sent, event.resource);
  const isBehindConsole = headers.get(FORWARDED_PREFIX)?.join() === "/";
  return {
    requestId: event.requestContext.requestId,
    method: event.httpMethod,
    path: isBehindConsole ? sent.slice(stage.length) : sent,
    resource: event.resource,
    prefix: isBehindConsole ? "" : stage,
    headers,
    pathParameters: definedOnly(event.pathParameters ?? {}),
    queryParameters: multiMap(event.multiValueQueryStringParameters ?? {}, (name) => name),
    body: event.isBase64Encoded ? bodyBytes(event).toString("utf8") : (event.body ?? ""),
  };
}

export const bodyBytes = ({ body, isBase64Encoded }: Pick<ApiEvent, "body" | "isBase64Encoded">): Buffer =>
  Buffer.from(body ?? "", isBase64Encoded ? "base64" : "utf8");

function prefixOf(path: string, resource: string): string {
  const steps = path.replace(/\/$/, "").split("/");
  return steps.slice(0, Math.max(1, steps.length - resource.split("/").length + 1)).join("/");
}

function multiMap(
  values: Readonly<Record<string, readonly string[] | undefined>> | null,
  name: (raw: string) => string,
): Map<string, string[]> {
  const map = new Map<string, string[]>();
  for (const [raw, list] of Object.entries(values ?? {})) {
    map.set(name(raw), [...(map.get(name(raw)) ?? []), ...(list ?? [])]);
  }
  return map;
}

function definedOnly(values: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const defined: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(values)) if (value !== undefined) defined[name] = value;
  return defined;
}
