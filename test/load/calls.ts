/** Sends the requests of the load test. A request without an answer has the status 0. */

export interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly retryAfter: string | null;
}

const TIMEOUT_MS = 30_000;

export async function call(base: string, token: string, method: string, path: string, body?: unknown): Promise<Answer> {
  try {
    const answer = await fetch(`${base}${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, ...(body !== undefined && { "Content-Type": "application/json" }) },
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: parsed(text), retryAfter: answer.headers.get("retry-after") };
  } catch {
    return { status: 0, body: undefined, retryAfter: null };
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const TRIES = 40;

export class Unanswered extends Error {
  readonly status: number;
  constructor(method: string, path: string, status: number) {
    super(`${method} ${path}: ${status === 0 ? "no answer" : status}`);
    this.status = status;
  }
}

/**
 * Sends a request that is not part of the measured load. Repeats it if a throttle refuses it. Also repeats a GET that gets no answer or a
 * 5xx, because the service may still be overloaded. Throws an error for any other failure, and after `TRIES` attempts.
 */
export async function patientCall(...[base, token, method, path, body]: Parameters<typeof call>): Promise<unknown> {
  for (let tries = 1; ; tries++) {
    const answer = await call(base, token, method, path, body);
    if (answer.status >= 200 && answer.status < 300) return answer.body;
    const mayRepeat = answer.status === 429 || (method === "GET" && (answer.status === 0 || answer.status >= 500));
    if (!mayRepeat || tries === TRIES) throw new Unanswered(method, path, answer.status);
    await new Promise((resolve) => setTimeout(resolve, 1_000 * Number(answer.retryAfter ?? 1)));
  }
}
