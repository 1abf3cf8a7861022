/** Lambda takes a process that waits for nothing for one that has ended: a sender that rests must not be taken for that. */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

test("a sender that rests has not ended, though it waits for nothing else", async () => {
  const script = fileURLToPath(new URL("./idle-process.ts", import.meta.url));
  const env = { ...process.env, TABLE_NAME: "t", TIME_SCALE: "1", DELIVERY_QUEUE_URL: "http://127.0.0.1:1/q" };
  const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"], env });
  expect(await text(child.stdout)).toBe("rested\n");
});
