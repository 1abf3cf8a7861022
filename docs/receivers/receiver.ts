/** A webhook receiver in one file, without dependencies: `WEBHOOK_SECRET=… node receiver.ts`, on Node.js 22.18 or newer. */
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { link, mkdir, unlink, writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { join } from "node:path";

const { WEBHOOK_SECRET: secret = "", HOST = "127.0.0.1", PORT = "8080", INBOX = "inbox" } = process.env;
if (secret === "") throw new Error("WEBHOOK_SECRET is not set");

/** An attempt is signed when it is made: one that is older was kept by somebody. */
const TOLERANCE_SECONDS = 300;
const MAX_BYTES = 1_000_000;

const key = secret.startsWith("whsec_") ? Buffer.from(secret.slice(6), "base64") : Buffer.from(secret, "utf8");

/** The delivery's id, when its bytes, id and time are signed with our secret; otherwise undefined. */
function verified(headers: IncomingHttpHeaders, body: Buffer): string | undefined {
  const header = (name: string): string => String(headers[name] ?? "");
  const [id, timestamp] = [header("webhook-id"), header("webhook-timestamp")];
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) <= TOLERANCE_SECONDS)) return undefined;
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  // While the secret is being rotated there are two signatures: one of them is ours.
  const isOurs = header("webhook-signature")
    .split(" ")
    .some((entry) => {
      const [version, signature = ""] = entry.split(",");
      const given = Buffer.from(signature, "base64");
      return version === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
    });
  return isOurs && /^\w+$/.test(id) ? id : undefined;
}

/** The bytes as they came: parsed and written again they would have another signature. Undefined when there are too many. */
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

/** Keeps a delivery once, however often it comes, and for good: false when it was there. Stands for a table with a unique key. */
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

/** The status to answer with. What is kept is worked on later, by whatever reads the inbox: the sender waits 10 seconds at most. */
async function receive(request: IncomingMessage): Promise<number> {
  if (request.method !== "POST") return 405;
  const body = await read(request);
  if (body === undefined) return 413;
  const id = verified(request.headers, body);
  if (id === undefined) return 401;
  if (await keep(id, body)) console.log(`${id} ${request.headers["x-service-event"]}`);
  return 204;
}

await mkdir(INBOX, { recursive: true });
const server = createServer(async (request, response) => {
  // Any answer but 2xx, and the delivery comes again.
  const status = await receive(request).catch((error: unknown) => {
    console.error(error);
    return 500;
  });
  response.writeHead(status).end();
});
server.listen(Number(PORT), HOST, () => {
  const address = server.address();
  console.log(`listening on http://${HOST}:${typeof address === "object" ? address?.port : PORT}`);
});
