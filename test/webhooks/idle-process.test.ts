/** Lambda treats an empty event loop as finished: a waiting sender must keep its process alive. */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

test("a process ends only after its sender has waited", async () => {
  const script = fileURLToPath(new URL("./idle-process.ts", import.meta.url));
  const env = { ...process.env, TABLE_NAME: "t", TIME_SCALE: "1", DELIVERY_QUEUE_URL: "http://127.0.0.1:1/q" };
  const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"], env });
  expect(await text(child.stdout)).toBe("waited\n");
});
