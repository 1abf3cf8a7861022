/** Several test processes may need the same work at the same time. Tests that only one of them runs it. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { onceInRun } from "./once.ts";

const newDirectory = () => mkdtemp(join(tmpdir(), "once-"));

test("the first caller does the work, and the others return when it has ended", async () => {
  const directory = await newDirectory();
  let [begun, ended] = [0, 0];
  const work = async () => {
    begun += 1;
    await sleep(50);
    ended += 1;
  };
  const callers = Array.from({ length: 5 }, async () => {
    await onceInRun("work", work, directory);
    expect(ended).toBe(1);
  });
  await Promise.all(callers);
  await onceInRun("work", work, directory);
  expect(begun).toBe(1);
  await onceInRun("other", work, directory);
  expect(begun).toBe(2);
});

test("a directory that cannot be used is an error at once, and does not look like work of another process", async () => {
  const missing = join(await newDirectory(), "missing");
  await expect(onceInRun("work", () => Promise.reject(new Error("it ran")), missing)).rejects.toThrow("ENOENT");
});

test("if the work fails, its caller gets the error, and the next caller does it again", async () => {
  const directory = await newDirectory();
  let count = 0;
  const work = async () => {
    count += 1;
    await sleep(50);
    if (count === 1) throw new Error("the disk is full");
  };
  const results = await Promise.allSettled([1, 2].map(() => onceInRun("work", work, directory)));
  expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(count).toBe(2);
});
