/** Tests the texts of the console for times, for the attempts of a delivery, and for the scopes of API keys. */
import { expect, test } from "vitest";
import { Scope } from "#shared/auth/scopes.ts";
import { linesOf, scopeTexts } from "../../console/src/keys/scopes.ts";
import { dateText, distanceText } from "../../console/src/ui/text.ts";
import { attemptsText } from "../../console/src/webhooks/delivery-state.ts";

const now = Date.UTC(2026, 10, 29, 12);
const shown = (ms: number): string => distanceText(new Date(now + ms).toISOString(), now);
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];

test.for([
  [0, "now"],
  [59_999, "now"],
  [-MINUTE, "1 minute ago"],
  [-59 * MINUTE, "59 minutes ago"],
  [-3 * HOUR, "3 hours ago"],
  [2 * HOUR, "in 2 hours"],
  [-36 * HOUR, "1 day ago"],
  [6.9 * DAY, "in 6 days"],
] as const)("a time of %d ms from now is %s", ([ms, text]) => expect(shown(ms)).toBe(text));

test("a time of a week or more is a date", () => {
  for (const ms of [-7 * DAY, 7 * DAY, 400 * DAY]) {
    expect(shown(ms)).toBe(dateText(new Date(now + ms).toISOString()));
  }
});

test.for([
  ["waiting", 3, null, 31 * MINUTE, "failed 3 times, again in 31 minutes"],
  ["waiting", 1, "pause", 31 * MINUTE, "failed once, again when it is resumed"],
  ["waiting", 2, null, undefined, "failed 2 times"],
  ["waiting", 0, null, 5 * MINUTE, "in 5 minutes"],
  ["waiting", 0, "pause", undefined, "when it is resumed"],
  ["exhausted", 10, null, undefined, "10 attempts"],
  ["delivered", 1, null, undefined, "1 attempt"],
] as const)(
  "a %s delivery with %d attempts, held by %s and due in %s ms: %s",
  ([status, attemptCount, heldBy, ms, text]) => {
    const nextAttemptAt = ms === undefined ? null : new Date(now + ms).toISOString();
    expect(attemptsText({ status, attemptCount, heldBy, nextAttemptAt }, now)).toBe(text);
  },
);

test("the console has a text of its own for each scope", () => {
  expect(scopeTexts.map(([scope]) => scope)).toEqual(Scope.options);
  expect(new Set(scopeTexts.map(([, text]) => text)).size).toBe(Scope.options.length);
});

test("the scopes of a key are grouped by the kind of record, and a later scope is shown by its name", () => {
  const scopes = ["prospects:read", "territories:write", "webhooks:manage", "prospects:export", "doors:open"];
  expect(linesOf(scopes)).toEqual(["Prospects: read, export", "Territories: change", "Webhooks", "doors:open"]);
});
