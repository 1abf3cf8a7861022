/** Tests small parts of the commands: the pace of table reads, the report of an erasure, and signals. */
import { EventEmitter } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import { onSignal } from "../../../infra/cli/command/signals.ts";
import { remainsUntil } from "../../../infra/cli/company/erasure.ts";
import { Pace } from "../../../infra/cli/company/rows.ts";

test("calls wait until the units of earlier calls are paid for", async () => {
  vi.useFakeTimers({ now: 0 });
  onTestFinished(() => void vi.useRealTimers());
  const pace = new Pace(100, async (ms) => {
    vi.setSystemTime(Date.now() + ms);
  });
  const starts: number[] = [];
  for (let i = 0; i < 5; i++) {
    starts.push(Date.now());
    await pace.pay(50);
  }
  expect(starts).toEqual([0, 500, 1_000, 1_500, 2_000]);
});

const erasedAt = "2026-11-01T00:00:00.000Z";

test("the report of an erasure contains the retention times of the deployment, not those of a standard deployment", () => {
  const standard = remainsUntil(erasedAt, { logDays: 90, recoveryDays: 35, backupDays: 0 });
  expect(standard).toMatchObject({
    "log lines, which have ids and no names": "2027-01-30T00:00:00.000Z",
    "point-in-time recovery of each table": "2026-12-06T00:00:00.000Z",
    "AWS Backup": "the plan makes no copies; copies made by hand, or under earlier settings, may remain longer",
  });
  const long = remainsUntil(erasedAt, { logDays: 1_827, recoveryDays: 7, backupDays: 365 });
  expect(long).toMatchObject({
    "log lines, which have ids and no names": "2031-11-02T00:00:00.000Z",
    "point-in-time recovery of each table": "2026-11-08T00:00:00.000Z",
    "AWS Backup": "2027-11-01T00:00:00.000Z; copies made by hand, or under earlier settings, may remain longer",
  });
});

test("a signal that npm sends again has no effect, and a later signal ends the command at once", () => {
  const signals = new EventEmitter();
  const calls: string[] = [];
  let now = 0;
  onSignal(
    () => calls.push("stop"),
    () => calls.push("end now"),
    { signals, now: () => now },
  );
  signals.emit("SIGINT");
  now = 1_999;
  signals.emit("SIGINT");
  signals.emit("SIGTERM");
  expect(calls).toEqual(["stop"]);
  now = 2_001;
  signals.emit("SIGINT");
  expect(calls).toEqual(["stop", "end now"]);
});
