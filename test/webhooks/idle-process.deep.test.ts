/** Tests that a sender that waits keeps its process alive. Lambda treats a process with an empty event loop as finished. */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

test("a process does not end before the wait of its sender ends", async () => {
  const script = fileURLToPath(new URL("./idle-process.ts", import.meta.url));
  const env = { ...process.env, TABLE_NAME: "t", TIME_SCALE: "1", DELIVERY_QUEUE_URL: "http://127.0.0.1:1/q" };
  const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"], env });
  expect(await text(child.stdout)).toBe("waited\n");
});
