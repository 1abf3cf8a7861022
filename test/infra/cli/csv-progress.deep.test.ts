/** Tests the progress lines that the CSV command prints. */
import { expect, onTestFinished, test, vi } from "vitest";
import { lineOf, openProgress, type Step } from "../../../infra/cli/csv/progress.ts";

const step: Step = { name: "writing", done: 30_000, total: 120_000, unit: "rows", errors: 1_234 };

test("a terminal gets one redrawn line, any other output plain lines", () => {
  const shown = (isTTY: boolean): string => {
    let all = "";
    const progress = openProgress({ isTTY, columns: 60, write: (part: string) => (all += part) });
    progress.show({ ...step, name: "checking" });
    progress.show({ ...step, name: "checking" });
    progress.show(step);
    progress.say("a message");
    progress.end();
    return all;
  };
  expect(shown(false)).toBe(
    "checking  25 %, 30,000 of 120,000 rows, 1,234 errors\nwriting  25 %, 30,000 of 120,000 rows, 1,234 errors\na message\n",
  );
  const erase = "\r\u001B[K";
  const drawn = "[######..................] 25 %, 30,000 of 120,000 rows, 1,234 errors";
  const [first, second] = [`checking ${drawn}`, `writing ${drawn}`].map((line) => line.slice(0, 59));
  expect(shown(true)).toBe(`${erase}${first}${erase}${second}${erase}a message\n${erase}`);
});

test("the speed of a step is in rows or megabytes a second, as its progress is in rows or bytes", () => {
  expect(lineOf(step, 1_500, false)).toBe("writing  25 %, 30,000 of 120,000 rows, 1,500 rows/s, 1,234 errors");
  const bytes = { name: "sending", done: 1_500_000, total: 3_000_000, unit: "bytes" } as const;
  expect(lineOf(bytes, 250_000, false)).toBe("sending  50 %, 1.5 MB of 3.0 MB, 0.3 MB/s");
  expect(lineOf({ name: "checking", done: 5, unit: "rows" }, undefined, true)).toBe("checking 5 rows");
});

test("a step without news is shown again with its time, more often on a terminal", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  for (const [isTTY, lines] of [
    [true, 12],
    [false, 1],
  ] as const) {
    const written: string[] = [];
    const progress = openProgress({ isTTY, columns: 200, write: (part: string) => written.push(part) });
    progress.show({ ...step, total: undefined });
    written.length = 0;
    vi.advanceTimersByTime(12_500);
    expect(written).toHaveLength(lines);
    expect(written.at(-1)).toContain(`, ${isTTY ? 12 : 10} s`);
    progress.end();
    written.length = 0;
    // An interrupted transfer may still report a step after the command's last message.
    progress.show({ ...step, name: "sending" });
    vi.advanceTimersByTime(20_000);
    expect(written).toEqual([]);
  }
});
