/** Makes the Lambda handler of an endpoint whose response is at most 6 MB large and is sent as a whole. */
import type { MiddlewareObj } from "@middy/core";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import { type ApiContext, apiContext } from "#shared/context.ts";
import { carryOut, type Plan } from "#shared/db/plan.ts";
import { stoppedAt } from "#shared/deadline.ts";
import { answer, assertAnswerFits } from "#shared/http/answer.ts";
import { answering, checked, requestChain } from "#shared/http/chain.ts";
import type { Answer, Call, Contract, Known } from "#shared/http/contract.ts";
import { type Commit, once } from "#shared/http/idempotency.ts";
import type { ApiEvent, Request } from "#shared/http/request.ts";
import { jsonBody } from "#shared/http/request-body.ts";

/** The endpoint responds this long before Lambda stops the function, so that the client gets a problem body and no API Gateway error. */
const DEADLINE_RESERVE_MS = 1_000;

export interface Endpoint {
  (event: APIGatewayProxyEvent, context: Context): Promise<APIGatewayProxyResult>;
  readonly contract: Contract;
}

/**
 * Answers what `work` returns. If the request has an idempotency key, the answer is stored after the work, so a repetition of a killed request
 * may do the work again.
 */
export const endpoint = <C extends Contract>(
  contract: Known<C>,
  work: (call: Call<C, ApiContext>) => Promise<Answer<C>>,
): Endpoint =>
  committing<C>(contract, async (call, commit) => {
    const value = await work(call);
    await commit({ writes: [], answer: value });
    return value;
  });

/**
 * Commits the plan that `verb` returns, and answers the plan's answer. If the request has an idempotency key, the same transaction stores
 * the answer. `verb` is called again if a record has changed since it was read, so it must only read.
 */
export const command = <C extends Contract>(
  contract: Known<C>,
  verb: (call: Call<C, ApiContext>) => Promise<Plan<Answer<C>>>,
): Endpoint => committing<C>(contract, async (call, commit) => (await carryOut(() => verb(call), commit)).answer);

/**
 * For work whose last transaction is a part of a longer algorithm, so that it cannot return a plan. Before it returns an answer, the work
 * must have committed this answer through `commit`, once.
 */
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
  const { collection, ok, status } = contract;
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
