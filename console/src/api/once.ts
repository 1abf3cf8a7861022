/** Gives requests an `Idempotency-Key`, so that a user who repeats a request after a lost answer does not do the same thing twice. */

/**
 * Milliseconds within which a repetition of a request that has not succeeded gets the same key. The service remembers a key for 24 hours.
 * But a user who sends the same request much later probably wants its effect once more.
 */
const REPEATED_MS = 10 * 60_000;
/** Maximum number of unsuccessful requests whose keys are remembered. The oldest one is forgotten first. */
const MOST = 20;

interface Attempt {
  readonly key: string;
  readonly endedAt: number;
}

/** The requests that have not succeeded, by their content. The service may have executed them, although no answer came. */
const unanswered = new Map<string, Attempt>();

/**
 * Sends a request. A POST that changes something gets an `Idempotency-Key`. If the POST has not succeeded, the same request gets the same
 * key again.
 */
export async function sendOnce(request: Request, send: (request: Request) => Promise<Response>): Promise<Response> {
  const content = request.method === "POST" ? await contentOf(request) : undefined;
  if (content === undefined) return send(request);
  const earlier = unanswered.get(content);
  const isRepeated = earlier !== undefined && Date.now() - earlier.endedAt < REPEATED_MS;
  const key = isRepeated ? earlier.key : randomUuid();
  request.headers.set("Idempotency-Key", key);
  unanswered.delete(content);
  let isDone = false;
  try {
    const response = await send(request);
    isDone = response.ok;
    return response;
  } finally {
    if (!isDone) remember(content, { key, endedAt: Date.now() });
  }
}

/** Returns the URL and the body of a POST as one text. Returns undefined for a request that only reads, such as a dry run. */
async function contentOf(request: Request): Promise<string | undefined> {
  const { pathname, searchParams } = new URL(request.url);
  const body = await request.clone().text();
  if (pathname === "/api/prospects/search" || searchParams.get("dryRun") === "true") return undefined;
  // A form is sent as multipart/form-data, whose parts are separated by a boundary. The browser chooses another boundary each time. The
  // boundary is removed here, so that the same form always gives the same text.
  const boundary = /boundary=(.+)$/.exec(request.headers.get("Content-Type") ?? "")?.[1];
  // In a JSON body, `"dryRun":true` means that the request is a dry run. A form is not searched, because its file may contain the text by
  // chance.
  if (boundary === undefined && body.includes('"dryRun":true')) return undefined;
  return `${request.url} ${boundary === undefined ? body : body.replaceAll(boundary, "")}`;
}

function remember(content: string, attempt: Attempt): void {
  for (const oldest of unanswered.keys()) {
    if (unanswered.size < MOST) break;
    unanswered.delete(oldest);
  }
  unanswered.set(content, attempt);
}

/** Does not use `crypto.randomUUID`, because browsers lack it in a page that another machine serves by HTTP. */
export const randomUuid = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0"))
    .join("")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
