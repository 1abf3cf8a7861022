/** Makes the responses of endpoints, within Lambda's size limit. */
import type { APIGatewayProxyResult } from "aws-lambda";
import { usageSoFar } from "#shared/db/meter.ts";
import {
  ApiError,
  ConditionFailed,
  DeadlinePassed,
  isTransient,
  problemBody,
  problems,
  TableBusy,
} from "#shared/errors.ts";
import type { Request } from "#shared/http/request.ts";
import * as limits from "#shared/limits.ts";
import { errorFields, log } from "#shared/log.ts";

export function answer(
  request: Request,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): APIGatewayProxyResult {
  return {
    statusCode: status,
    headers: { "Content-Type": "application/json", ...commonHeaders(request, status), ...headers },
    body: JSON.stringify(body),
  };
}

/** The response for an error (RFC 9457). A 5xx response hides the error's detail, unless `showsDetail` is set. The log shows the cause. */
export function problemAnswer(request: Request, error: unknown): APIGatewayProxyResult {
  const problem = asApiError(error);
  const { status } = problems[problem.code];
  if (status >= 500) log.error("request failed", { code: problem.code, ...errorFields(problem.cause ?? error) });
  const detail = status >= 500 && !problem.showsDetail ? problems[problem.code].title : problem.message;
  return answer(
    request,
    status,
    { ...problemBody(problem.code, `${detail}`, request.requestId, problem.faults), ...problem.members },
    {
      "Content-Type": "application/problem+json",
      ...(problem.code === "unavailable" && { "Retry-After": "1" }),
      ...(problem.location !== undefined && { Location: `${request.prefix}${problem.location}` }),
      ...problem.headers,
    },
  );
}

export const TOOK_TOO_LONG = "The request took too long.";

function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof DeadlinePassed) {
    return new ApiError("unavailable", TOOK_TOO_LONG, { showsDetail: true, cause: error });
  }
  if (error instanceof ConditionFailed || error instanceof TableBusy) {
    return new ApiError("unavailable", "Other requests keep changing the record.", { cause: error });
  }
  if (isTransient(error))
    return new ApiError("unavailable", "A service we depend on did not answer.", { cause: error });
  return new ApiError("internal", "internal", { cause: error });
}

export function commonHeaders(request: Request, status = 200): Record<string, string> {
  return {
    "X-Request-Id": request.requestId,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    ...corsHeaders(request),
    ...serverTiming(status),
  };
}

/** The `dur` values are counts, not times. A 404 shows no units, because the units of a hidden row would reveal that the row exists. */
function serverTiming(status: number): Record<string, string> {
  const usage = usageSoFar();
  if (process.env.SERVER_TIMING !== "on" || usage === undefined) return {};
  const units = [
    ["read-units", usage.readUnits, "DynamoDB read units"],
    ["write-units", usage.writeUnits, "DynamoDB write units"],
  ] as const;
  const metrics = [
    ...(status === 404 ? [] : units),
    ["requests", usage.requests, "DynamoDB requests"],
    ["rounds", usage.rounds, "Sequential DynamoDB rounds"],
  ] as const;
  return { "Server-Timing": metrics.map(([name, value, text]) => `${name};dur=${value};desc="${text}"`).join(", ") };
}

const allowedOrigins = (): string[] => (process.env.ALLOWED_ORIGINS?.split(",") ?? []).map((entry) => entry.trim());
export const allowsOrigins = (): boolean => allowedOrigins().some((origin) => origin !== "");

/** Exposes the response headers that an app needs, because browsers hide most headers from scripts. */
function corsHeaders(request: Request): Record<string, string> {
  const origin = request.headers.get("origin")?.[0];
  const allowed = allowedOrigins();
  if (origin === undefined || origin === "" || !(allowed.includes(origin) || allowed.includes("*"))) return {};
  return {
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Expose-Headers":
      "Content-Disposition, Date, ETag, Idempotency-Replayed, Link, Location, Retry-After, X-Request-Id",
    Vary: "Origin",
  };
}

/** The bytes of Lambda's JSON that are reserved for the headers, the status and everything else outside the body. */
const ENVELOPE_BYTES = 16 * 1024;
/** Maximum bytes of a UTF-16 code unit of the body. A body that could be too large by this estimate is measured exactly. */
const CHARACTER_BYTES = 3;

/** Returns the number of bytes of the body in the JSON that Lambda returns, where the body is an escaped string. */
export const answerBytes = (body: string): number => Buffer.byteLength(JSON.stringify(body));

/** Throws `internal` if the body is too large. Without this check, API Gateway would answer 502 without a problem body. */
export function assertAnswerFits(body: string): void {
  const room = limits.bufferedAnswerBytes - ENVELOPE_BYTES;
  if (body.length * CHARACTER_BYTES <= room) return;
  const bytes = answerBytes(body);
  if (bytes <= room) return;
  throw new ApiError("internal", "the answer is too large", {
    cause: new Error(`the answer has ${bytes} bytes and Lambda's limit is ${room}: bound the answer or stream it`),
  });
}
