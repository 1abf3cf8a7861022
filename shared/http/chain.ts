/** The steps that all endpoints share: log context, authorization, parsing, error responses and the deadline. */
import middy, { type MiddlewareObj } from "@middy/core";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import * as z from "zod/mini";
import { type Caller, CallerContext, isAdmin, may } from "#shared/auth/caller.ts";
import { metered } from "#shared/db/meter.ts";
import { ApiError } from "#shared/errors.ts";
import { problemAnswer, TOOK_TOO_LONG } from "#shared/http/answer.ts";
import type { Allow, Call, Contract, Parsed } from "#shared/http/contract.ts";
import { type ApiEvent, type Request, readRequest } from "#shared/http/request.ts";
import { type Part, parameterNames, requireKnown, validate } from "#shared/http/validate.ts";
import { addLogContext, log, withLogContext } from "#shared/log.ts";

interface Setup<Services> {
  readonly reserveMs: number;
  readonly services: () => Services;
  readonly body?: MiddlewareObj<ApiEvent> | [];
}

type Chain<Answer> = (event: ApiEvent, context: Context) => Promise<Answer | APIGatewayProxyResult>;

/** The client gets a problem body if `succeed` throws, or still runs `reserveMs` before Lambda stops the function. */
export function requestChain<C extends Contract, Answer, Services>(
  contract: C,
  { reserveMs, services, body = [] }: Setup<Services>,
  succeed: (request: Request, call: Call<C, Services>) => Promise<Answer>,
): Chain<Answer> {
  return middy<ApiEvent, Answer | APIGatewayProxyResult, Error, Context>({
    timeoutEarlyInMillis: reserveMs,
    timeoutEarlyResponse: () => {
      throw new ApiError("unavailable", contract.unknownOutcome ?? TOOK_TOO_LONG, { showsDetail: true });
    },
  })
    .use(authorization(contract.allow))
    .use(knownParameters(contract))
    .use(body)
    .onError((failed) => {
      failed.response = problemAnswer(failed.event.request, failed.error);
    })
    .handler(async (event: ApiEvent) => {
      const { request, caller, payload } = event;
      if (caller === undefined) throw new ApiError("internal", "the request has no caller");
      return succeed(request, {
        context: services(),
        caller,
        requestId: request.requestId,
        path: parse(contract, "path", request.pathParameters),
        query: parse(contract, "query", joinedValues(request.queryParameters)),
        body: parse(contract, "body", payload),
      });
    });
}

/** Throws `permission_denied` if the caller lacks the role or permission for the endpoint. */
const authorization = (allow: Allow): MiddlewareObj<ApiEvent> => ({
  before: ({ event }) => {
    if (allow === "public") return;
    const caller = callerOf(event);
    addLogContext({ companyId: caller.companyId, userId: caller.userId });
    if (!isAllowed(caller, allow)) throw new ApiError("permission_denied", missing(allow));
    event.caller = caller;
  },
});

/** Before the body is read, so that a misspelt filter is found whatever the body is. */
function knownParameters(contract: Contract): MiddlewareObj<ApiEvent> {
  const names = parameterNames(contract);
  return { before: ({ event: { request } }) => requireKnown(request.queryParameters.keys(), names) };
}

/** Throws `internal` if it is missing, because only a wrong deployment can cause this. */
function callerOf({ requestContext }: ApiEvent): Caller {
  const handed = z.safeParse(CallerContext, requestContext.authorizer);
  if (!handed.success) throw new ApiError("internal", "the authorizer passed no caller", { cause: handed.error });
  return handed.data;
}

function isAllowed(caller: Caller, allow: Allow): boolean {
  if (allow === "public" || allow === "everyone") return true;
  return allow === "admin" ? isAdmin(caller) : may(caller, allow);
}

const missing = (allow: Allow): string =>
  allow === "admin"
    ? "Only admins and owners may do this."
    : `You lack the permission ${allow}, which an admin can give you.`;

/** A successful request is logged if it used at least this number of read and write units. */
const LOGGED_UNITS = 500;

/**
 * Logs one line if the request failed or used many table units. The access log already has a line for each request, and a second line would
 * more than double the cost of logs.
 */
export function answering<Answer extends { readonly statusCode: number }>(
  event: APIGatewayProxyEvent,
  work: (event: ApiEvent) => Promise<Answer>,
): Promise<Answer> {
  const request = readRequest(event);
  return withLogContext({ requestId: request.requestId, route: `${request.method} ${request.resource}` }, async () => {
    const { result, usage } = await metered(() => work({ ...event, request }));
    const isUsual = result.statusCode < 400 && usage.readUnits + usage.writeUnits < LOGGED_UNITS;
    log[isUsual ? "debug" : "info"]("request", { status: result.statusCode, ...usage });
    return result;
  });
}

/** Removes undocumented fields. Throws `internal` if a value violates the contract. */
export function checked<S extends z.ZodMiniType>(schema: S, value: unknown): z.output<S> {
  const parsed = z.safeParse(schema, value);
  if (!parsed.success)
    throw new ApiError("internal", "the response does not fit its contract", { cause: parsed.error });
  return parsed.data;
}

/** Returns an empty object without a schema, so that an endpoint never receives input that was not validated. */
function parse<C extends Contract, P extends Part>(contract: C, part: P, value: unknown): Parsed<C[P]>;
function parse(contract: Contract, part: Part, value: unknown): unknown {
  const schema = contract[part];
  return schema === undefined ? {} : validate(part, schema, value);
}

/** Values of a repeated query parameter. If only one is allowed, the parameter's schema refuses them. */
function joinedValues(parameters: ReadonlyMap<string, readonly string[]>): Record<string, string> {
  const joined: Record<string, string> = Object.create(null);
  for (const [name, values] of parameters) joined[name] = values.join(",");
  return joined;
}
