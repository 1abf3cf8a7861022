/** Tests that a local service that is killed under load keeps every acknowledged write, and delivers every waiting event. */
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod/mini";
import { at } from "../harness/client.ts";
import { startReceiver } from "../harness/receiver.ts";
import { dataOf, Identified } from "../harness/shapes.ts";
import { restartable } from "../jobs/restarted-service.ts";

const Created = z.object({ data: z.object({ prospect: Identified }) });

test("a killed service keeps each acknowledged write and delivers each waiting event once", async () => {
  const start = restartable({ LOCAL_TIME_SCALE: "60" });
  const first = await start();
  // The receiver answers 503 until the kill, so that every delivery still waits then.
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
  await first.end("SIGKILL");
  await stopped;
  expect(new Set(acknowledged).size).toBe(acknowledged.length);

  isUp = true;
  receiver.receipts.length = 0;
  const reader = await (await start()).clientOf("rep@acme.test");
  for (const id of acknowledged) {
    expect(dataOf(await reader.GET("/api/prospects/{id}", at(id)))).toMatchObject({ id });
  }
  const missing = (): number[] => {
    const delivered = receiver.receipts.map(({ event }) => z.parse(Created, event).data.prospect.id);
    return acknowledged.filter((id) => !delivered.includes(id));
  };
  await expect.poll(missing, { timeout: 240_000 }).toEqual([]);
  const ids = receiver.receipts.map(({ event }) => event.id);
  expect(new Set(ids).size).toBe(ids.length);
});
