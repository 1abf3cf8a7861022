/**
 * Tests that running imports continue when the local service is stopped by SIGTERM or SIGKILL and started again. Each row must be
 * imported once.
 */
import { expect, test } from "vitest";
import { expectWhole, importOf, pause, type Running, start, upload } from "./restarted-service.ts";

/** Number of rows. It is large, so that the service is still importing when the signal comes. */
const ROWS = 20_000;

/** Uploads a file, and waits until some of its rows are written. */
async function runningImport(service: Running, word: string): Promise<number> {
  const id = await upload(service, word, ROWS);
  while ((await importOf(service, id)).written === 0) await pause();
  expect((await importOf(service, id)).state).toBe("running");
  return id;
}

/**
 * An interrupted import continues after about three minutes: the lease of the killed job (two minutes) must expire, and then the sweeper
 * starts the import again. In addition, a busy machine is up to ten times slower than an idle one.
 */
const TIMEOUT_MS = 1_800_000;

test("imports that SIGTERM and SIGKILL cut off continue after the next start, and import each row once", {
  timeout: TIMEOUT_MS,
}, async () => {
  const first = await start();
  const terminated = await runningImport(first, "Terminated");
  await first.end("SIGTERM");

  const second = await start();
  const killed = await runningImport(second, "Killed");
  await second.end("SIGKILL");

  const third = await start();
  await expectWhole(third, terminated, "Terminated", ROWS);
  await expectWhole(third, killed, "Killed", ROWS);
  await third.end("SIGTERM");
});
