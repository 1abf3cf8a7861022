/** Tests how a command reacts to signals. The first one stops it, a repetition by npm has no effect, and a later one ends it at once. */
import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { onSignal } from "../../../infra/command/signals.ts";

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
