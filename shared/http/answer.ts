/** Makes the answer of an endpoint: headers that every response carries, JSON or problem body. */
import type { APIGatewayProxyResult } from "aws-lambda";
import { usageSoFar } from "#shared/db/meter.ts";
import { ApiError, ConditionFailed, isTransient, TableBusy } from "#shared/errors.ts";
import { problemBody, problems } from "#shared/http/problem.ts";
import type { Request } from "#shared/http/request.ts";
import { errorFields, log } from "#shared/log.ts";

export function answer(
  request: Request,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): APIGatewayProxyResult {
  return {
    statusCode: status,
    headers: { "Content-Type": "application/json", ...commonHeaders(request), ...headers },
    body: JSON.stringify(body),
  };
}

/** Any error as a problem body. What is not the caller's fault is logged and told in constant words. */
export function problemAnswer(request: Request, error: unknown): APIGatewayProxyResult {
  const problem = asApiError(error);
  const { status } = problems[problem.code];
  if (status >= 500) log.error("request failed", { code: problem.code, ...errorFields(problem.cause ?? error) });
  const detail = status >= 500 ? problems[problem.code].title : problem.message;
  return answer(request, status, problemBody(problem.code, `${detail}`, request.requestId, problem.faults), {
    "Content-Type": "application/problem+json",
    ...(problem.code === "unavailable" && { "Retry-After": "1" }),
    ...problem.headers,
  });
}

function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof ConditionFailed || error instanceof TableBusy) {
    return new ApiError("unavailable", "The record is being changed by others.", { cause: error });
  }
  if (isTransient(error))
    return new ApiError("unavailable", "A service we depend on did not answer.", { cause: error });
  return new ApiError("internal", "internal", { cause: error });
}

/** Headers of every response, whatever its body. */
export function commonHeaders(request: Request): Record<string, string> {
  return {
    "X-Request-Id": request.requestId,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    ...corsHeaders(request),
    ...serverTiming(),
  };
}

/** What the request has taken of the table so far: numbers where a browser expects milliseconds, and their names. */
function serverTiming(): Record<string, string> {
  const usage = usageSoFar();
  if (process.env.SERVER_TIMING !== "on" || usage === undefined) return {};
  const metrics = [
    ["read-units", usage.readUnits, "DynamoDB read units"],
    ["write-units", usage.writeUnits, "DynamoDB write units"],
    ["requests", usage.requests, "DynamoDB requests"],
    ["rounds", usage.rounds, "DynamoDB rounds, one after the other"],
  ] as const;
  return { "Server-Timing": metrics.map(([name, value, text]) => `${name};dur=${value};desc="${text}"`).join(", ") };
}

/** Whether pages of any other origin may call. */
export const allowsOrigins = (): boolean => (process.env.ALLOWED_ORIGINS ?? "") !== "";

/** Exposed headers are those a browser application needs beyond the safelisted ones. */
function corsHeaders(request: Request): Record<string, string> {
  const origin = request.headers.get("origin")?.[0];
  const allowed = (process.env.ALLOWED_ORIGINS ?? "").split(",").map((entry) => entry.trim());
  if (origin === undefined || origin === "" || !(allowed.includes(origin) || allowed.includes("*"))) return {};
  return {
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Expose-Headers":
      "Content-Disposition, Idempotency-Replayed, Link, Location, Retry-After, X-Request-Id",
    Vary: "Origin",
  };
}
