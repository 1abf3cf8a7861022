/** Reads values from answers. Each function fails the test if the answer does not have the expected form. */
import { expect } from "vitest";
import * as z from "zod/mini";
import type { Answer } from "./client.ts";

export const Identified = z.object({ id: z.number() });
const Problem = z.object({
  code: z.string(),
  status: z.number(),
  requestId: z.string(),
  errors: z.array(z.looseObject({ pointer: z.optional(z.string()), parameter: z.optional(z.string()) })),
});

/** Expects this status in an answer of the untyped client, and returns the parsed body. */
export function bodyOf<S extends z.ZodMiniType>(answer: Answer, status: number, schema: S): z.output<S> {
  expect(answer.status, answer.text.slice(0, 500)).toBe(status);
  return z.parse(schema, answer.body);
}

interface TypedAnswer<Data> {
  readonly data?: Data;
  readonly error?: unknown;
  readonly response: Response;
}

/** Expects this status in an answer of the typed client. Returns the data of the answer. */
export function dataOf<Data>({ data, error, response }: TypedAnswer<Data>, status = 200): Data {
  expect(response.status, JSON.stringify(error)).toBe(status);
  return data ?? expect.fail(`${response.url} gave no data`);
}

/** Expects a problem body with this status and code, which no cache may store. Returns its list of errors. */
export function problemOf(answer: Answer | TypedAnswer<unknown>, status: number, code: string) {
  const isTyped = "response" in answer;
  const response = isTyped ? answer.response : answer;
  expect(response.status, JSON.stringify(answer).slice(0, 500)).toBe(status);
  const problem = z.parse(Problem, isTyped ? answer.error : answer.body);
  expect(problem.code).toBe(code);
  expect(problem.status).toBe(status);
  expect(response.headers.get("x-request-id")).toBe(problem.requestId);
  expect(response.headers.get("cache-control")).toBe("no-store");
  return problem.errors;
}

export const statusOf = ({ response }: { readonly response: Response }): number => response.status;

export const present = <T>(value: T | null | undefined): T => value ?? expect.fail("what must be there is missing");

/** Returns the error with which the work fails, or undefined if it succeeds. */
export const thrownBy = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

let names = 0;
export const uniqueName = (): string => `T${process.pid}-${Date.now().toString(36)}-${names++}`;
