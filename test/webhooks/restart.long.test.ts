/**
 * Tests a local service that is killed under load and then started again. After the restart, it must have every acknowledged write, and
 * must deliver every waiting event.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod/mini";
import { apiClient } from "../../docs/client/client.ts";
import { startReceiver } from "../harness/receiver.ts";
import { dataOf, Identified } from "../harness/shapes.ts";
import { start } from "../infra/local/start-process.ts";

const Created = z.object({ data: z.object({ prospect: Identified }) });

/** Starts the service. Returns a function that kills it, and one that returns the client of a user. */
async function started(DATA_DIR: string) {
  const { child, ready, code } = start([], { DATA_DIR, LOCAL_TIME_SCALE: "60" });
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await code;
  };
  onTestFinished(kill);
  const baseUrl = await ready;
  const clientOf = async (email: string) => {
    const answer = await fetch(`${baseUrl}/local/token`, { method: "POST", body: JSON.stringify({ email }) });
    const token = (await answer.text()).trim();
    return apiClient({ baseUrl, accessToken: () => token });
  };
  return { kill, clientOf };
}

test("a killed service keeps each acknowledged write and delivers each waiting event once", async () => {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-restart-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const first = await started(directory);
  // The receiver answers 503 until the service is killed. At the kill, every delivery is therefore still waiting.
  let isUp = false;
  const receiver = await startReceiver((_, response) => response.writeHead(isUp ? 200 : 503).end());
  onTestFinished(receiver.close);
  const registrations = [{ event: "prospect.created" }];
  const admin = await first.clientOf("admin@acme.test");
  dataOf(await admin.POST("/api/webhooks", { body: { name: "Survivor", url: receiver.url, registrations } }), 201);

  const rep = await first.clientOf("rep@acme.test");
  const acknowledged: number[] = [];
  const workers = Array.from({ length: 8 }, async (_, worker) => {
    for (let i = 0; ; i++) {
      const made = await rep.POST("/api/prospects", { body: { name: `${worker}-${i}` } });
      acknowledged.push(dataOf(made, 201).id);
    }
  });
  const stopped = Promise.allSettled(workers);
  while (acknowledged.length < 80) await new Promise((resolve) => setTimeout(resolve, 10));
  await first.kill();
  await stopped;
  expect(new Set(acknowledged).size).toBe(acknowledged.length);

  isUp = true;
  receiver.receipts.length = 0;
  const reader = await (await started(directory)).clientOf("rep@acme.test");
  for (const id of acknowledged) {
    expect(dataOf(await reader.GET("/api/prospects/{id}", { params: { path: { id } } }))).toMatchObject({ id });
  }
  const missing = (): number[] => {
    const delivered = receiver.receipts.map(({ event }) => z.parse(Created, event).data.prospect.id);
    return acknowledged.filter((id) => !delivered.includes(id));
  };
  await expect.poll(missing, { timeout: 240_000 }).toEqual([]);
  const ids = receiver.receipts.map(({ event }) => event.id);
  expect(new Set(ids).size).toBe(ids.length);
});
