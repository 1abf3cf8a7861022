/** Says what has happened to a delivery that waits, and when it is sent again. */
import type { Delivery } from "canvassing-client/api";
import { amount, distanceText } from "../ui/text.ts";

type Waiting = Pick<Delivery, "status" | "attemptCount" | "heldBy" | "nextAttemptAt">;

/** Returns for example `failed 3 times, again in 31 minutes`. For a delivery that waits no more, returns the number of its attempts. */
export function attemptsText({ status, attemptCount, heldBy, nextAttemptAt }: Waiting, nowMs: number): string {
  if (status !== "waiting") return amount(attemptCount, "attempt");
  const failed = attemptCount > 0 && `failed ${attemptCount === 1 ? "once" : `${attemptCount} times`}`;
  const time = heldBy === "pause" ? "when it is resumed" : nextAttemptAt && distanceText(nextAttemptAt, nowMs);
  return [failed, failed && time ? `again ${time}` : time].filter(Boolean).join(", ");
}
