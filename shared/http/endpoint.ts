/** Makes the handler of an endpoint that sends its response as a whole, and the steps that streamed endpoints share with it. */
import middy, { type MiddlewareObj } from "@middy/core";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import * as z from "zod/mini";
import { type Caller, CallerContext, isAdmin, may } from "#shared/auth/caller.ts";
import { requireScope } from "#shared/auth/scopes.ts";
import { type ApiContext, apiContext } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { carryOut, type Plan } from "#shared/db/plan.ts";
import { stoppedAt } from "#shared/deadline.ts";
import { ApiError } from "#shared/errors.ts";
import { allowsOrigins, answer, assertAnswerFits, problemAnswer, TOOK_TOO_LONG } from "#shared/http/answer.ts";
import type { Allow, Answer, Call, Contract, Known, Parsed } from "#shared/http/contract.ts";
import { type Commit, once } from "#shared/http/idempotency.ts";
import { type ApiEvent, type Request, readRequest } from "#shared/http/request.ts";
import { jsonBody } from "#shared/http/request-body.ts";
import { type Part, parameterNames, requireKnown, validate } from "#shared/http/validate.ts";
import { addLogContext, log, withLogContext } from "#shared/log.ts";

/** The endpoint responds this long before Lambda stops the function, because the client would otherwise get an error of API Gateway. */
const DEADLINE_RESERVE_MS = 1_000;

export interface Endpoint {
  (event: APIGatewayProxyEvent, context: Context): Promise<APIGatewayProxyResult>;
  readonly contract: Contract;
}

/** Stores the answer for repeated requests only after the work. If the function is killed before, a repetition does the work again. */
export const endpoint = <C extends Contract>(
  contract: Known<C>,
  work: (call: Call<C, ApiContext>) => Promise<Answer<C>>,
): Endpoint =>
  committing<C>(contract, async (call, commit) => {
    const value = await work(call);
    await commit({ writes: [], answer: value });
    return value;
  });

/** Commits the verb's plan and stores its answer in one transaction. `verb` must only read: it is called again if a record has changed. */
export const command = <C extends Contract>(
  contract: Known<C>,
  verb: (call: Call<C, ApiContext>) => Promise<Plan<Answer<C>>>,
): Endpoint => committing<C>(contract, async (call, commit) => (await carryOut(() => verb(call), commit)).answer);

/** For work that needs several transactions. The work must call `commit` once, with its answer and its last writes. */
export const committing = <C extends Contract>(
  contract: Known<C>,
  work: (call: Call<C, ApiContext>, commit: Commit) => Promise<Answer<C>>,
): Endpoint =>
  buffered<C>(contract, (request, call) =>
    once(call.context, call.caller, request, contract, (commit, requestKey) =>
      work({ ...call, context: { ...call.context, requestKey } }, commit),
    ),
  );

interface Result {
  readonly value: unknown;
  readonly replayed: boolean;
}

function buffered<C extends Contract>(
  contract: C,
  work: (request: Request, call: Call<C, ApiContext>) => Promise<Result>,
): Endpoint {
  const setup = { reserveMs: DEADLINE_RESERVE_MS, services: apiContext, body: bodyReader(contract) };
  const chain = requestChain(contract, setup, async (request, call) => {
    const answered = success(contract, request, await work(request, call));
    assertAnswerFits(answered.body);
    return answered;
  });
  const handle = (event: APIGatewayProxyEvent, context: Context): Promise<APIGatewayProxyResult> =>
    answering(event, (received) =>
      stoppedAt(
        () => context.getRemainingTimeInMillis() - DEADLINE_RESERVE_MS,
        () => chain(received, context),
      ),
    );
  return Object.assign(handle, { contract });
}

function success(contract: Contract, request: Request, { value, replayed }: Result): APIGatewayProxyResult {
  const { collection, ok, status = 200 } = contract;
  const again = replayed ? { "Idempotency-Replayed": "true" } : {};
  if (ok?.applies(value) === true) return answer(request, 200, checked(ok.response, value), again);
  const isCreated = status === 201 || (status === 202 && collection !== undefined);
  const headers = { ...(isCreated && location(request, collection, value)), ...again };
  return answer(request, status, checked(contract.response, value), headers);
}

function bodyReader({ body, bodyMediaType, upload }: Contract): MiddlewareObj<ApiEvent> | [] {
  if (upload !== undefined) return upload;
  return body === undefined ? [] : jsonBody(bodyMediaType);
}

function location(request: Request, collection: string | undefined, value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null || !("id" in value)) return {};
  const parent = collection === undefined ? request.path.replace(/\/$/, "") : `${request.prefix}${collection}`;
  return { Location: `${parent}/${String(value.id)}` };
}

interface Setup<Services> {
  readonly reserveMs: number;
  readonly services: () => Services;
  readonly body?: MiddlewareObj<ApiEvent> | [];
}

type Chain<Answer> = (event: ApiEvent, context: Context) => Promise<Answer | APIGatewayProxyResult>;

/** The client gets a problem body if `succeed` throws, or if it still runs `reserveMs` before Lambda stops the function. */
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
    .use(authorization(contract))
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

const authorization = ({ allow, scope }: Contract): MiddlewareObj<ApiEvent> => ({
  before: ({ event }) => {
    const caller = callerOf(event);
    addLogContext({ companyId: caller.companyId, userId: caller.userId });
    requireScope(caller, scope);
    if (!isAllowed(caller, allow)) throw new ApiError("permission_denied", missing(allow));
    event.caller = caller;
  },
});

/** Refuses unknown query parameters. It runs before the body is read, so it reports a misspelt filter even if the body has a fault too. */
function knownParameters(contract: Contract): MiddlewareObj<ApiEvent> {
  const names = parameterNames(contract);
  return { before: ({ event: { request } }) => requireKnown(request.queryParameters.keys(), names) };
}

/** Throws `internal` if the authorizer has passed no caller, because only a wrong deployment can cause this. */
function callerOf({ requestContext }: ApiEvent): Caller {
  const handed = z.safeParse(CallerContext, requestContext.authorizer);
  if (!handed.success) throw new ApiError("internal", "the authorizer passed no caller", { cause: handed.error });
  return handed.data;
}

function isAllowed(caller: Caller, allow: Allow): boolean {
  if (allow === "everyone") return true;
  return allow === "admin" ? isAdmin(caller) : may(caller, allow);
}

const missing = (allow: Allow): string =>
  allow === "admin"
    ? "Only admins and owners may do this."
    : `You lack the permission ${allow}, which an admin can give you.`;

/** A successful request is logged if it used at least this number of read and write units. */
const LOGGED_UNITS = 500;

/**
 * Logs at the level `debug` unless the request failed or was costly. The access log has a line for each request, so a second line for each
 * would more than double the cost of logs.
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

/** Returns the value of a response without undocumented fields. Throws `internal` if the value violates the schema of the contract. */
export function checked<S extends z.ZodMiniType>(schema: S, value: unknown): z.output<S> {
  const parsed = z.safeParse(schema, value);
  if (!parsed.success)
    throw new ApiError("internal", "the response does not fit its contract", { cause: parsed.error });
  return parsed.data;
}

/** Validates a part of the request. Returns an empty object if the contract has no schema: endpoints get only validated input. */
function parse<C extends Contract, P extends Part>(contract: C, part: P, value: unknown): Parsed<C[P]>;
function parse(contract: Contract, part: Part, value: unknown): unknown {
  const schema = contract[part];
  return schema === undefined ? {} : validate(part, schema, value);
}

/** Joins the values of a repeated parameter with commas. If only one value is allowed, the parameter's schema refuses the joined text. */
function joinedValues(parameters: ReadonlyMap<string, readonly string[]>): Record<string, string> {
  const joined: Record<string, string> = Object.create(null);
  for (const [name, values] of parameters) joined[name] = values.join(",");
  return joined;
}

/** Answers 405 with an `Allow` header. API Gateway cannot do this itself: its mock integration needs a template for each media type. */
export const refusingMethods =
  (methodsOf: (path: string) => readonly string[]) =>
  (event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> =>
    answering(event, async ({ request }) => {
      const allowed = [...methodsOf(request.resource), ...(allowsOrigins() ? ["OPTIONS"] : [])];
      const error = new ApiError(
        "method_not_allowed",
        `${request.method} is not available here. The methods of this path are ${allowed.join(", ")}.`,
        { headers: { Allow: allowed.join(", ") } },
      );
      return problemAnswer(request, error);
    });
