/** A webhook receiver in one file without dependencies, for Node.js 22.18 or newer: `WEBHOOK_SECRET=… node receiver.ts`. */
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { link, mkdir, readdir, readFile, unlink, writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

const { WEBHOOK_SECRET: secret = "", HOST = "127.0.0.1", PORT = "8080", INBOX = "inbox" } = process.env;
const { API_KEY, API_URL = "http://127.0.0.1:3000" } = process.env;
if (secret === "") throw new Error("WEBHOOK_SECRET is not set");

/**
 * Maximum difference between the timestamp of a request and the present time. The service signs each attempt when it sends it, so a request
 * with an older timestamp may be a copy that an attacker sends again.
 */
const TOLERANCE_SECONDS = 300;
const MAX_BYTES = 1_000_000;

const key = secret.startsWith("whsec_") ? Buffer.from(secret.slice(6), "base64") : Buffer.from(secret, "utf8");

/**
 * Returns the delivery's id if the timestamp is recent and a signature with our secret matches the id, the timestamp and the body.
 * Otherwise returns undefined.
 */
function verified(headers: IncomingHttpHeaders, body: Buffer): string | undefined {
  const header = (name: string): string => String(headers[name] ?? "");
  const [id, timestamp] = [header("webhook-id"), header("webhook-timestamp")];
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) <= TOLERANCE_SECONDS)) return undefined;
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  // After a rotation of the secret there are two signatures: one of them must match.
  const isOurs = header("webhook-signature")
    .split(" ")
    .some((entry) => {
      const [version, signature = ""] = entry.split(",");
      const given = Buffer.from(signature, "base64");
      return version === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
    });
  return isOurs && /^\w+$/.test(id) ? id : undefined;
}

/**
 * Returns the raw bytes of the body, because JSON that is parsed and written again may have other bytes and then another signature. Returns
 * undefined if the body is too large.
 */
async function read(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Stores a delivery durably. Returns false if it is already stored. The file name is the delivery id, so no second file can be created. */
async function keep(id: string, body: Buffer): Promise<boolean> {
  const draft = join(INBOX, `.${id}.${randomUUID()}`);
  await writeFile(draft, body, { flush: true });
  try {
    await link(draft, join(INBOX, `${id}.json`));
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  } finally {
    await unlink(draft);
  }
}

/**
 * Calls the API: writes a note on a new prospect. A repeated request has the same Idempotency-Key, so it writes no second note. The file
 * `<id>.done` is written at the end. If it is missing, the next start of this program calls the API again.
 */
async function callBack(id: string): Promise<void> {
  const { event, test, data } = JSON.parse(await readFile(join(INBOX, `${id}.json`), "utf8"));
  if (event === "prospect.created" && test !== true) {
    const url = `${API_URL}/api/prospects/${data.prospect.id}/notes`;
    const headers = { Authorization: `Bearer ${API_KEY}`, "Content-Type": "application/json", "Idempotency-Key": id };
    const request = { method: "POST", headers, body: JSON.stringify({ body: "The CRM has this prospect." }) };
    for (;;) {
      const answer = await fetch(url, { ...request, signal: AbortSignal.timeout(30_000) }).catch(() => undefined);
      if (answer?.ok) break;
      const retryAfter = answer?.headers.get("Retry-After") ?? undefined;
      const isFinal = answer !== undefined && answer.status < 500 && retryAfter === undefined;
      if (isFinal) throw new Error(`${id}: ${answer.status} ${await answer.text()}`);
      await wait(Number(retryAfter ?? 5) * 1_000);
    }
  }
  await writeFile(join(INBOX, `${id}.done`), "");
}

let calls = Promise.resolve();
/** Calls the API for one delivery after another, if the receiver has an API key. */
function enqueue(id: string): void {
  if (API_KEY !== undefined) calls = calls.then(() => callBack(id)).catch(console.error);
}

/**
 * Stores the delivery and returns the status of the response. The stored deliveries are handled later, because the service waits at most
 * 10 seconds for the response.
 */
async function receive(request: IncomingMessage): Promise<number> {
  if (request.method !== "POST") return 405;
  const body = await read(request);
  if (body === undefined) return 413;
  const id = verified(request.headers, body);
  if (id === undefined) return 401;
  if (await keep(id, body)) {
    console.log(`${id} ${request.headers["x-service-event"]}`);
    enqueue(id);
  }
  return 204;
}

await mkdir(INBOX, { recursive: true });
const stored = await readdir(INBOX);
for (const name of stored) {
  const [id = "", type] = name.split(".");
  if (type === "json" && !stored.includes(`${id}.done`)) enqueue(id);
}
const server = createServer(async (request, response) => {
  // After an error, for example if the disk is full, the response is 500. The service then sends the delivery again later.
  const status = await receive(request).catch((error: unknown) => {
    console.error(error);
    return 500;
  });
  response.writeHead(status).end();
});
// This event occurs, for example, if another process already uses the port.
server.on("error", (error) => {
  console.error(error.message);
  process.exitCode = 1;
});
server.listen(Number(PORT), HOST, () => {
  const address = server.address();
  console.log(`listening on http://${HOST}:${typeof address === "object" ? address?.port : PORT}`);
});
