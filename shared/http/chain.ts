/** What every endpoint does around its work, however it answers: log context, the caller, parsing, problems, deadline. */
import middy, { type MiddlewareObj } from "@middy/core";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { type ApiContext, apiContext } from "#shared/context.ts";
import { metered } from "#shared/db/meter.ts";
import { ApiError } from "#shared/errors.ts";
import { problemAnswer } from "#shared/http/answer.ts";
import { authorization } from "#shared/http/authorization.ts";
import type { Contract } from "#shared/http/contract.ts";
import type { ApiEvent } from "#shared/http/event.ts";
import { jsonBody } from "#shared/http/json-body.ts";
import { type Request, readRequest } from "#shared/http/request.ts";
import { type Part, validate } from "#shared/http/validate.ts";
import { log, withLogContext } from "#shared/log.ts";

/** What the work of an endpoint gets. All parts are parsed. */
export interface Call<Path, Query, Body> {
  readonly context: ApiContext;
  readonly caller: Caller;
  readonly path: Path;
  readonly query: Query;
  readonly body: Body;
}

type Chain<Answer> = (event: ApiEvent, context: Context) => Promise<Answer | APIGatewayProxyResult>;

/**
 * `succeed` makes the answer; whatever it throws becomes a problem body. So does running late: `reserveMs` before the
 * function's time is up.
 */
export function requestChain<
  Path extends z.ZodMiniType,
  Query extends z.ZodMiniType,
  Body extends z.ZodMiniType,
  Answer,
>(
  contract: Contract<Path, Query, Body>,
  reserveMs: number,
  succeed: (request: Request, call: Call<z.output<Path>, z.output<Query>, z.output<Body>>) => Promise<Answer>,
): Chain<Answer> {
  return middy<ApiEvent, Answer | APIGatewayProxyResult, Error, Context>({
    timeoutEarlyInMillis: reserveMs,
    timeoutEarlyResponse: () => {
      throw new ApiError("unavailable", "The request took too long.");
    },
  })
    .use(authorization(contract.allow))
    .use(bodyReader(contract))
    .onError((failed) => {
      failed.response = problemAnswer(failed.event.request, failed.error);
    })
    .handler(async (event: ApiEvent) => {
      const { request, caller, payload } = event;
      if (caller === undefined) throw new ApiError("internal", "no caller behind the authorizer");
      return succeed(request, {
        context: apiContext(),
        caller,
        path: parse("path", contract.path, request.pathParameters),
        query: parse("query", contract.query, joinedValues(request.queryParameters)),
        body: parse("body", contract.body, payload),
      });
    });
}

function bodyReader({ body, upload }: Contract): MiddlewareObj<ApiEvent> | [] {
  if (upload !== undefined) return upload;
  return body === undefined ? [] : jsonBody();
}

/** Runs one request with its log context, and logs its line once it is answered. */
export function answering<Answer extends { readonly statusCode: number }>(
  event: APIGatewayProxyEvent,
  work: (event: ApiEvent) => Promise<Answer>,
): Promise<Answer> {
  const request = readRequest(event);
  return withLogContext({ requestId: request.requestId, route: `${request.method} ${request.resource}` }, async () => {
    const { result, usage } = await metered(() => work({ ...event, request }));
    log.info("request", { status: result.statusCode, ...usage });
    return result;
  });
}

/** Only documented fields leave the service; a value that does not fit its own contract is our fault. */
export function checked<S extends z.ZodMiniType>(schema: S, value: unknown): z.output<S> {
  const parsed = z.safeParse(schema, value);
  if (!parsed.success)
    throw new ApiError("internal", "the response does not fit its contract", { cause: parsed.error });
  return parsed.data;
}

/** A part without a schema is an empty object: nothing of it reaches the work. */
function parse<S extends z.ZodMiniType>(part: Part, schema: S | undefined, value: unknown): z.output<S>;
function parse(part: Part, schema: z.ZodMiniType | undefined, value: unknown): unknown {
  return schema === undefined ? {} : validate(part, schema, value);
}

/** A parameter given more than once is read as a comma list; where one value is meant, that fails its schema. */
function joinedValues(parameters: ReadonlyMap<string, readonly string[]>): Record<string, string> {
  const joined: Record<string, string> = Object.create(null);
  for (const [name, values] of parameters) joined[name] = values.join(",");
  return joined;
}
