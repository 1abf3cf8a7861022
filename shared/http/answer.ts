/** Makes the answers of endpoints: common headers, JSON and problem bodies, and a check of Lambda's size limit. */
import type { APIGatewayProxyResult } from "aws-lambda";
import type { ApiContext } from "#shared/context.ts";
import { usageSoFar } from "#shared/db/meter.ts";
import { ApiError, ConditionFailed, isTransient, TableBusy } from "#shared/errors.ts";
import { problemBody, problems } from "#shared/http/problem.ts";
import type { Request } from "#shared/http/request.ts";
import { limits } from "#shared/limits.ts";
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

/** Turns any error into an answer with a problem body. Logs a 5xx error, and answers it with a constant text that reveals nothing. */
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
    return new ApiError("unavailable", "Other requests keep changing the record.", { cause: error });
  }
  if (isTransient(error))
    return new ApiError("unavailable", "A service we depend on did not answer.", { cause: error });
  return new ApiError("internal", "internal", { cause: error });
}

/** The headers of every response. */
export function commonHeaders(request: Request): Record<string, string> {
  return {
    "X-Request-Id": request.requestId,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    ...corsHeaders(request),
    ...serverTiming(),
  };
}

/**
 * A Server-Timing header with the request's use of the table so far. The header's durations, which normally hold milliseconds, hold counts
 * here.
 */
function serverTiming(): Record<string, string> {
  const usage = usageSoFar();
  if (process.env.SERVER_TIMING !== "on" || usage === undefined) return {};
  const metrics = [
    ["read-units", usage.readUnits, "DynamoDB read units"],
    ["write-units", usage.writeUnits, "DynamoDB write units"],
    ["requests", usage.requests, "DynamoDB requests"],
    ["rounds", usage.rounds, "Sequential DynamoDB rounds"],
  ] as const;
  return { "Server-Timing": metrics.map(([name, value, text]) => `${name};dur=${value};desc="${text}"`).join(", ") };
}

/** Whether web pages of other origins may call the API. */
export const allowsOrigins = (): boolean => (process.env.ALLOWED_ORIGINS ?? "") !== "";

/** The CORS headers. They expose the response headers that a browser application needs and cannot read by default. */
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

/** The number of bytes reserved for the headers, the status and the JSON envelope of Lambda's answer. */
const ENVELOPE_BYTES = 16 * 1024;
/** The largest number of bytes of one character of JSON text within the envelope: three bytes in UTF-8, or two for an escaped character. */
const CHARACTER_BYTES = 3;

/** The number of bytes that a body takes within the JSON of Lambda's answer. */
export const answerBytes = (body: string): number => Buffer.byteLength(JSON.stringify(body));

/** Throws `internal` for a body above Lambda's limit, which API Gateway would otherwise answer with 502. */
export function assertAnswerFits(body: string): void {
  const room = limits.bufferedAnswerBytes - ENVELOPE_BYTES;
  if (body.length * CHARACTER_BYTES <= room) return;
  const bytes = answerBytes(body);
  if (bytes <= room) return;
  throw new ApiError("internal", "the answer is too large", {
    cause: new Error(`the answer has ${bytes} bytes and Lambda's limit is ${room}: bound the answer or stream it`),
  });
}

/** Rejects an answer that is larger than Lambda's limit before the transaction of the request commits. */
export const rejectingLargeAnswers = (context: ApiContext): ApiContext => ({
  ...context,
  commit: async (writes, answer) => {
    assertAnswerFits(JSON.stringify(answer) ?? "");
    await context.commit(writes, answer);
  },
});
