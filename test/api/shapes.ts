/** What the tests read out of answers: loosely, since the document has already been checked. */
import { expect } from "vitest";
import * as z from "zod/mini";
import type { Answer } from "./client.ts";

export const Identified = z.object({ id: z.number() });
export const Page = z.object({
  items: z.array(z.looseObject({ id: z.number() })),
  total: z.number(),
  page: z.number(),
  pageSize: z.number(),
});
export const Problem = z.object({
  code: z.string(),
  status: z.number(),
  requestId: z.string(),
  errors: z.array(z.looseObject({ pointer: z.optional(z.string()), parameter: z.optional(z.string()) })),
});
export const History = z.array(
  z.looseObject({
    status: z.nullable(z.looseObject({ value: z.string() })),
    previousStatus: z.nullable(z.looseObject({ value: z.string() })),
  }),
);
export const ProspectBody = z.looseObject({
  id: z.number(),
  name: z.nullable(z.string()),
  createdAt: z.string(),
  updatedAt: z.string(),
  assignedTo: z.nullable(z.looseObject({ id: z.number(), email: z.string() })),
  currentStatus: z.nullable(z.looseObject({ id: z.number(), value: z.string() })),
});
export const DetailBody = z.extend(ProspectBody, { statusHistory: History, notes: z.array(z.unknown()) });

/** The answer's body, after its status was as expected. */
export function bodyOf<S extends z.ZodMiniType>(answer: Answer, status: number, schema: S): z.output<S> {
  expect(answer.status, answer.text.slice(0, 500)).toBe(status);
  return z.parse(schema, answer.body);
}

/** A problem of this status and code; gives its faults. */
export function problemOf(answer: Answer, status: number, code: string) {
  const problem = bodyOf(answer, status, Problem);
  expect(problem.code).toBe(code);
  expect(problem.status).toBe(status);
  expect(answer.headers.get("x-request-id")).toBe(problem.requestId);
  return problem.errors;
}

/** Name that no other test uses. */
let names = 0;
export const uniqueName = (): string => `T${process.pid}-${Date.now().toString(36)}-${names++}`;
