/** Calls the API of a deployment as any client does. This file shares no code with the functions. */
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod/mini";

/** The error of a failed check of the smoke test. Its message contains no token. */
export class SmokeError extends Error {}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new SmokeError(message);
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export type Api = (method: string, path: string, body?: unknown) => Promise<Answer>;

/** Milliseconds after which a request without an answer fails. It is longer than the time-out of API Gateway, 29 seconds. */
const ANSWER_MS = 30_000;

/** A request is repeated at most this often after a 429. Some deployments permit a company few requests a second. */
const REPEATS = 5;

export function apiAt(base: string, accessToken: string): Api {
  return async (method, path, body) => {
    for (let left = REPEATS; ; left--) {
      const request = {
        method,
        headers: { Authorization: `Bearer ${accessToken}`, "Content-Type": "application/json" },
        signal: AbortSignal.timeout(ANSWER_MS),
        ...(body !== undefined && { body: JSON.stringify(body) }),
      };
      const answer = await fetch(`${base}${path}`, request).catch((error: unknown) => {
        throw new SmokeError(`${method} ${path}: no answer`, { cause: error });
      });
      const content: unknown = await answer.json().catch(() => undefined);
      if (answer.status !== 429 || left === 0) return { status: answer.status, body: content };
      await wait(1_000 * Number(answer.headers.get("Retry-After") ?? 1));
    }
  };
}

const Problem = z.object({ code: z.string() });

/** Calls the API and returns the body. Throws if the answer has an unexpected status. */
export async function call<S extends z.ZodMiniType>(
  api: Api,
  [method, path, body]: Parameters<Api>,
  status: number,
  schema: S,
): Promise<z.output<S>> {
  const answer = await api(method, path, body);
  const problem = z.safeParse(Problem, answer.body);
  const code = problem.success ? ` (${problem.data.code})` : "";
  assert(answer.status === status, `${method} ${path}: ${answer.status}${code} instead of ${status}`);
  const parsed = z.safeParse(schema, answer.body);
  assert(parsed.success, `${method} ${path}: the answer has another shape`);
  return parsed.data;
}
