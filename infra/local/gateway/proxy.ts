/** Builds the event that API Gateway sends to a function, and reads the function's result (proxy integration, payload format 1.0). */
import { validateHeaderName, validateHeaderValue } from "node:http";
import * as z from "zod/mini";
import { ACCOUNT } from "../servers/address.ts";
import { arn } from "../template/names.ts";
import type { Answer } from "./answers.ts";
import type { AuthorizerContext } from "./authorizers.ts";
import { header, isBinary, type RawRequest } from "./request.ts";
import type { Match } from "./router.ts";

export interface Call {
  readonly request: RawRequest;
  readonly match: Match;
  readonly body: Buffer;
  readonly requestId: string;
  readonly sourceIp: string;
  readonly stage: string;
  readonly stageVariables: Readonly<Record<string, string>>;
  readonly binaryMediaTypes: readonly string[];
  /** The values that the authorizer returned for this request. Undefined if the method has no authorizer. */
  readonly authorizer: AuthorizerContext | undefined;
}

const API_ID = "local";

/** Returns the ARN of a request. The authorizer returns an IAM policy, which allows or denies the ARN. */
export const methodArn = (stage: string, { verb, path }: RawRequest): string =>
  arn("execute-api", `${API_ID}/${stage}/${verb}${path}`);

export function proxyEvent(call: Call): object {
  const { request, match, body, binaryMediaTypes } = call;
  const binary = body.length > 0 && isBinary(binaryMediaTypes, header(request, "content-type"));
  const headers = new Map([
    ...request.headers,
    ["X-Forwarded-For", [call.sourceIp]],
    ["X-Forwarded-Port", ["443"]],
    ["X-Forwarded-Proto", ["https"]],
    [
      "X-Amzn-Trace-Id",
      [`Root=1-${hex(Math.floor(Date.now() / 1000))}-${call.requestId.replaceAll("-", "").slice(0, 24)}`],
    ],
  ]);
  return {
    resource: match.method.path,
    path: request.path,
    httpMethod: request.verb,
    headers: lastValues(headers),
    multiValueHeaders: Object.fromEntries(headers),
    queryStringParameters: request.query.size === 0 ? null : lastValues(request.query),
    multiValueQueryStringParameters: request.query.size === 0 ? null : Object.fromEntries(request.query),
    pathParameters: match.parameters.size === 0 ? null : Object.fromEntries(match.parameters),
    stageVariables: Object.keys(call.stageVariables).length === 0 ? null : call.stageVariables,
    requestContext: requestContext(call),
    body: body.length === 0 ? null : body.toString(binary ? "base64" : "utf8"),
    isBase64Encoded: binary,
  };
}

const hex = (value: number): string => value.toString(16).padStart(8, "0");

const lastValues = (values: ReadonlyMap<string, readonly string[]>): Record<string, string> =>
  Object.fromEntries([...values].map(([name, all]) => [name, all.at(-1) ?? ""]));

function requestContext({ request, match, requestId, sourceIp, stage, authorizer }: Call): object {
  const now = new Date();
  return {
    accountId: ACCOUNT,
    apiId: API_ID,
    ...(authorizer !== undefined && { authorizer }),
    domainName: header(request, "host") ?? "localhost",
    domainPrefix: "local",
    extendedRequestId: requestId,
    httpMethod: request.verb,
    identity: { sourceIp, userAgent: header(request, "user-agent") ?? null },
    // API Gateway leaves the stage out of this path if the API has a custom domain. The local path does not contain the stage either.
    path: request.path,
    protocol: "HTTP/1.1",
    requestId,
    requestTime: now.toUTCString(),
    requestTimeEpoch: now.getTime(),
    resourceId: match.method.path,
    resourcePath: match.method.path,
    stage,
  };
}

const Scalar = z.union([z.string(), z.number(), z.boolean()]);
const Head = {
  statusCode: z.pipe(
    z.union([z.int(), z.pipe(z.string().check(z.regex(/^\d{3}$/)), z.transform(Number))]),
    z.int().check(z.minimum(200), z.maximum(599)),
  ),
  headers: z.nullish(z.record(z.string(), Scalar)),
  multiValueHeaders: z.nullish(z.record(z.string(), z.array(Scalar))),
};
const Metadata = z.looseObject({ ...Head, cookies: z.optional(z.array(z.string())) });
/** The result of a function. The schema accepts no other keys, because API Gateway refuses a result with other keys. */
const Result = z.strictObject({
  ...Head,
  body: z.nullish(z.string()),
  isBase64Encoded: z.nullish(z.boolean()),
});

/** Reads the result of a function. Returns undefined if it is malformed. API Gateway responds with 502 to such a result. */
export function readResult(payload: string, { request, binaryMediaTypes }: Call): Answer | undefined {
  const parsed = z.safeParse(Result, JSON.parse(payload));
  if (!parsed.success) return undefined;
  const { statusCode, body, isBase64Encoded } = parsed.data;
  const headers = headersOf(parsed.data);
  if (headers === undefined) return undefined;
  const accepted = header(request, "accept")?.split(",")[0];
  const decode = isBase64Encoded === true && isBinary(binaryMediaTypes, accepted);
  return { status: statusCode, headers, body: decode ? Buffer.from(body ?? "", "base64") : (body ?? "") };
}

export function readMetadata(text: string): Omit<Answer, "body"> | undefined {
  const parsed = z.safeParse(Metadata, JSON.parse(text));
  const headers = parsed.success ? headersOf(parsed.data) : undefined;
  return parsed.success && headers ? { status: parsed.data.statusCode, headers } : undefined;
}

function headersOf(head: Pick<z.infer<typeof Result>, "headers" | "multiValueHeaders">): Answer["headers"] | undefined {
  const multiple = Object.entries(head.multiValueHeaders ?? {});
  const taken = new Set(multiple.map(([name]) => name.toLowerCase()));
  const single = Object.entries(head.headers ?? {}).filter(([name]) => !taken.has(name.toLowerCase()));
  const all = [
    ...single.map(([name, value]): [string, string] => [name, String(value)]),
    ...multiple.flatMap(([name, values]) => values.map((value): [string, string] => [name, String(value)])),
  ];
  try {
    for (const [name, value] of all) {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    }
    return clientHeaders(all);
  } catch {
    return undefined;
  }
}

type Header = readonly [name: string, value: string];

/** Headers that API Gateway removes from a function's response. Source: AWS's page "Amazon API Gateway important notes", REST APIs. */
const droppedOfAnswer = new Set([
  ...["expect", "host", "proxy-authenticate", "te", "trailer", "transfer-encoding", "upgrade", "via"],
]);

/** Headers that API Gateway renames to `x-amzn-Remapped-…` in a function's response. */
const renamedOfAnswer = new Set([
  ...["authorization", "connection", "content-md5", "date", "max-forwards", "server", "user-agent", "www-authenticate"],
]);

function clientHeaders(headers: readonly Header[]): Header[] {
  const seen = headers
    .filter(([name]) => !droppedOfAnswer.has(name.toLowerCase()))
    .map(
      ([name, value]): Header =>
        renamedOfAnswer.has(name.toLowerCase()) ? [`x-amzn-Remapped-${name}`, value] : [name, value],
    );
  const isTyped = seen.some(([name]) => name.toLowerCase() === "content-type");
  return isTyped ? seen : [...seen, ["Content-Type", "application/json"]];
}
