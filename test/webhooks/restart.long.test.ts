/**
 * Tests a local service that is killed under load and then started again. After the restart, it must have every acknowledged write, and
 * must deliver every waiting event.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { type Receiver, startReceiver } from "../harness/receiver.ts";

const root = join(import.meta.dirname, "../..");
const dataDir = mkdtempSync(join(tmpdir(), "canvassing-restart-"));
const running = new Set<ChildProcess>();
afterAll(() => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(dataDir, { recursive: true, force: true });
});

const Identified = z.object({ id: z.number() });
const Created = z.object({ data: z.object({ prospect: Identified }) });

async function start(): Promise<{ url: string; child: ChildProcess }> {
  const child = spawn(process.execPath, ["infra/local/start.ts"], {
    cwd: root,
    env: { ...process.env, PORT: "0", DATA_DIR: dataDir, LOCAL_TIME_SCALE: "60" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.add(child);
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^ready (\S+)$/.exec(line)?.[1];
    if (url !== undefined) {
      child.stdout.resume();
      return { url, child };
    }
  }
  throw new Error("the service ended before it was ready");
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  running.delete(child);
}

const tokens = new Map<string, Promise<string>>();

/**
 * Returns a token that this service accepts. A token contains the issuer's URL, which changes at each start. The keys of the token cache
 * therefore contain the URL.
 */
function tokenOf(url: string, email: string): Promise<string> {
  const known = tokens.get(`${url} ${email}`);
  if (known !== undefined) return known;
  const token = fetch(`${url}/local/token`, { method: "POST", body: JSON.stringify({ email }) });
  const text = token.then((answer) => answer.text()).then((answer) => answer.trim());
  tokens.set(`${url} ${email}`, text);
  return text;
}

async function call(url: string, email: string, method: string, path: string, body?: unknown): Promise<unknown> {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { Authorization: `Bearer ${await tokenOf(url, email)}`, "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status}`);
  return answer.json();
}

test("a killed service keeps each acknowledged write and delivers each waiting event once", async () => {
  let receiver: Receiver | undefined;
  const first = await start();
  // The receiver answers 503 until the service is killed. At the kill, every delivery is therefore still waiting.
  let isUp = false;
  receiver = await startReceiver((_, response) => response.writeHead(isUp ? 200 : 503).end());
  await call(first.url, "admin@acme.test", "POST", "/api/webhooks", {
    name: "Survivor",
    url: receiver.url,
    registrations: [{ event: "prospect.created" }],
  });

  const acknowledged: number[] = [];
  const workers = Array.from({ length: 8 }, async (_, worker) => {
    for (let i = 0; ; i++) {
      const made = await call(first.url, "rep@acme.test", "POST", "/api/prospects", { name: `${worker}-${i}` });
      acknowledged.push(z.parse(Identified, made).id);
    }
  });
  const stopped = Promise.allSettled(workers);
  while (acknowledged.length < 80) await new Promise((resolve) => setTimeout(resolve, 10));
  await kill(first.child);
  await stopped;
  expect(new Set(acknowledged).size).toBe(acknowledged.length);

  isUp = true;
  receiver.receipts.length = 0;
  const second = await start();
  for (const id of acknowledged) {
    expect(await call(second.url, "rep@acme.test", "GET", `/api/prospects/${id}`)).toMatchObject({ id });
  }
  const delivered = (): Set<number> =>
    new Set(receiver.receipts.map(({ event }) => z.parse(Created, event).data.prospect.id));
  const deadline = Date.now() + 240_000;
  while (!acknowledged.every((id) => delivered().has(id))) {
    if (Date.now() > deadline) throw new Error(`${delivered().size} of ${acknowledged.length} arrived`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const ids = receiver.receipts.map(({ event }) => event.id);
  expect(new Set(ids).size).toBe(ids.length);
  await kill(second.child);
  await receiver.close();
});
