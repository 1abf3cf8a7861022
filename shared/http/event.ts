/** The event that travels through an endpoint's middlewares: API Gateway's, and what each of them adds to it. */
import type { APIGatewayProxyEvent } from "aws-lambda";
import type { Caller } from "#shared/auth/caller.ts";
import type { Request } from "#shared/http/request.ts";

export interface ApiEvent extends APIGatewayProxyEvent {
  /** The parts of the event that the service reads. */
  request: Request;
  /** Set by the authorization middleware; absent on public endpoints. */
  caller?: Caller;
  /** The body, parsed, where the endpoint takes one; no schema has seen it yet. */
  payload?: unknown;
}
