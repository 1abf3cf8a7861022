/** The only way to make an API function: contract in, Lambda handler out. Authentication, parsing, errors, ids and logs live here, once. */
import middy from "@middy/core";
import jsonBodyParser from "@middy/http-json-body-parser";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { metered } from "#shared/db/meter.ts";
import { answer, problemAnswer } from "#shared/http/answer.ts";
import type { Contract } from "#shared/http/contract.ts";
import type { ApiEvent } from "#shared/http/event.ts";
import { authentication } from "#shared/http/middleware/authentication.ts";
import { bodyGuard } from "#shared/http/middleware/body-guard.ts";
import { ApiError } from "#shared/http/problem.ts";
import { type Request, readRequest } from "#shared/http/request.ts";
import { type Part, validate } from "#shared/http/validate.ts";
import { log, withLogContext } from "#shared/log.ts";
import { type World, world } from "#shared/world.ts";

/** An answer is made this long before the function's time is up, so that the client gets a problem body and no gateway error. */
const DEADLINE_RESERVE_MS = 1_000;

/** What the work of an endpoint gets. All parts are parsed. */
export interface Call<Path, Query, Body> {
  readonly world: World;
  readonly caller: Caller;
  readonly path: Path;
  readonly query: Query;
  readonly body: Body;
}

export interface Endpoint {
  (event: APIGatewayProxyEvent, context: Context): Promise<APIGatewayProxyResult>;
  readonly contract: Contract;
}

export function endpoint<
  Response extends z.ZodMiniType,
  Path extends z.ZodMiniType,
  Query extends z.ZodMiniType,
  Body extends z.ZodMiniType,
>(
  contract: Contract<Path, Query, Body, Response>,
  work: (call: Call<z.output<Path>, z.output<Query>, z.output<Body>>) => Promise<z.input<Response>>,
): Endpoint {
  const chain = middy<ApiEvent, APIGatewayProxyResult, Error, Context>({
    timeoutEarlyInMillis: DEADLINE_RESERVE_MS,
    timeoutEarlyResponse: () => {
      throw new ApiError("unavailable", "The request took too long.");
    },
  })
    .use(authentication(contract.allow))
    .use(contract.body === undefined ? [] : [bodyGuard(), jsonBodyParser<ApiEvent>()])
    .onError((failed) => {
      failed.response = problemAnswer(failed.event.request, failed.error);
    })
    .handler(async (event: ApiEvent) => {
      const { request, caller } = event;
      if (caller === undefined) throw new ApiError("internal", "no caller behind authentication");
      const value = await work({
        world: world(),
        caller,
        path: parse("path", contract.path, request.pathParameters),
        query: parse("query", contract.query, joinedValues(request.queryParameters)),
        body: parse("body", contract.body, event.body),
      });
      const headers = contract.status === 201 ? location(request, contract.collection, value) : {};
      return answer(request, contract.status, checked(contract.response, value), headers);
    });

  const handle = (event: APIGatewayProxyEvent, context: Context): Promise<APIGatewayProxyResult> => {
    const request = readRequest(event);
    return withLogContext(
      { requestId: request.requestId, route: `${request.method} ${request.resource}` },
      async () => {
        const { result, usage } = await metered(() => chain({ ...event, request }, context));
        log.info("request", { status: result.statusCode, ...usage });
        return result;
      },
    );
  };
  return Object.assign(handle, { contract });
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

/** Only documented fields leave the service; a value that does not fit its own contract is our fault. */
function checked<S extends z.ZodMiniType>(schema: S, value: z.input<S>): z.output<S> {
  const parsed = z.safeParse(schema, value);
  if (!parsed.success)
    throw new ApiError("internal", "the response does not fit its contract", { cause: parsed.error });
  return parsed.data;
}

/** Where the created record can be read: the collection's path and the new id. */
function location(request: Request, collection: string | undefined, value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null || !("id" in value)) return {};
  const place = collection === undefined ? request.path.replace(/\/$/, "") : `${request.prefix}${collection}`;
  return { Location: `${place}/${String(value.id)}` };
}
