/** Makes the Lambda handler of an endpoint whose response is at most 6 MB large and is sent as a whole. */
import type { MiddlewareObj } from "@middy/core";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import type * as z from "zod/mini";
import type { ApiContext } from "#shared/context.ts";
import { apiContext } from "#shared/context.ts";
import { stoppedAt } from "#shared/deadline.ts";
import { answer, assertAnswerFits, rejectingLargeAnswers } from "#shared/http/answer.ts";
import { answering, type Call, checked, requestChain } from "#shared/http/chain.ts";
import type { Contract } from "#shared/http/contract.ts";
import { idempotently } from "#shared/http/idempotency.ts";
import type { ApiEvent, Request } from "#shared/http/request.ts";
import { jsonBody } from "#shared/http/request-body.ts";

/** The endpoint responds this long before Lambda stops the function, so that the client gets a problem body and no API Gateway error. */
const DEADLINE_RESERVE_MS = 1_000;

export interface Endpoint {
  (event: APIGatewayProxyEvent, context: Context): Promise<APIGatewayProxyResult>;
  readonly contract: Contract;
}

export function endpoint<
  Response extends z.ZodMiniType,
  Path extends z.ZodMiniType,
  Query extends z.ZodMiniType,
  Body extends z.ZodMiniType,
  DryRun extends z.ZodMiniType = z.ZodMiniType<never, never>,
>(
  contract: Contract<Path, Query, Body, Response, DryRun>,
  work: (call: Call<z.output<Path>, z.output<Query>, z.output<Body>>) => Promise<z.input<Response> | z.input<DryRun>>,
): Endpoint {
  const setup = { reserveMs: DEADLINE_RESERVE_MS, services: apiContext, body: bodyReader(contract) };
  const chain = requestChain(contract, setup, async (request, call) => {
    const run = (context: ApiContext) => work({ ...call, context });
    const { value, replayed } = await idempotently(
      rejectingLargeAnswers(call.context),
      call.caller,
      request,
      run,
      contract,
    );
    const { collection, dryRun } = contract;
    const isDryRun = dryRun?.applies(value) === true;
    const status = isDryRun ? 200 : contract.status;
    const headers = {
      ...((status === 201 || (status === 202 && collection !== undefined)) && location(request, collection, value)),
      ...(replayed && { "Idempotency-Replayed": "true" }),
    };
    const schema = isDryRun ? dryRun.response : contract.response;
    const answered = answer(request, status, checked(schema, value), headers);
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

function bodyReader({ body, bodyMediaType, upload }: Contract): MiddlewareObj<ApiEvent> | [] {
  if (upload !== undefined) return upload;
  return body === undefined ? [] : jsonBody(bodyMediaType);
}

function location(request: Request, collection: string | undefined, value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null || !("id" in value)) return {};
  const parent = collection === undefined ? request.path.replace(/\/$/, "") : `${request.prefix}${collection}`;
  return { Location: `${parent}/${String(value.id)}` };
}
