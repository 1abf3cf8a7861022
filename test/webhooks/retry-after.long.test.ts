/**
 * Tests that a delivery's next attempt comes at the time that the receiver requests in the header Retry-After, but within limits. The tests
 * use every form of this header.
 */
import { beforeAll, expect, test } from "vitest";
import { contextOn } from "#shared/context.ts";
import { resumeWebhook } from "#shared/webhooks/deliver/paused-backlog.ts";
import { nextGapMs } from "#shared/webhooks/retry-plan.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { sized } from "../harness/tier.ts";
import { deliveries, drain, newPipeline, publish, START } from "./delivery-pipeline.ts";
import { expectReconciled } from "./reconciled.ts";

const db = faultyDynamoDb();
beforeAll(async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
});

const httpDate = (ms: number): string => new Date(ms).toUTCString();
const DAY = 86_400_000;

/**
 * Values of the header, each with the expected milliseconds from the failure to the next attempt. Undefined means that the header is
 * invalid and the normal retry plan applies.
 */
const forms: readonly (readonly [string | undefined, number | undefined])[] = [
  ["120", 120_000],
  [" 120 ", 120_000],
  ["0", 1_000],
  ["86400", DAY],
  ["86401", DAY],
  ["9999999999", DAY],
  ["9".repeat(400), DAY],
  [httpDate(START + 90_000), 90_000],
  [httpDate(START - 90_000), 1_000],
  [httpDate(START + 400 * DAY), DAY],
  [undefined, undefined],
  ["", undefined],
  ["-120", undefined],
  ["+120", undefined],
  ["1.5", undefined],
  ["0x10", undefined],
  ["Infinity", undefined],
  ["120, 240", undefined],
  ["tomorrow", undefined],
  [new Date(START + 90_000).toISOString(), undefined],
  ["Mon, 01 Jun 2026 25:00:00 GMT", undefined],
];

/**
 * The header is read in the same way for each status. 410 is always tested with all values of the header, because it also pauses the
 * webhook. Each of the other statuses is tested with every fourth value, or in the project `wide` with all values.
 */
const FEW = sized({ short: 4, wide: 1 });

test.each([
  [410, forms],
  ...[429, 302, 400, 503].map((status, turn) => [status, forms.filter((_, i) => (i - turn) % FEW === 0)] as const),
] as const)(
  "Retry-After of a %i answer sets the next attempt between 1 s and 24 h later",
  { tags: "sized" },
  async (status, given) => {
    for (const [retryAfter, gapMs] of given) {
      const at = await newPipeline(db);
      at.answers = (_, number) => (number === 1 ? { status, retryAfter } : { status: 204 });
      await publish(at);
      const [first] = at.queue;
      if (first === undefined) throw new Error("no message");
      // Only the first attempt is made. Its result already contains the time of the next attempt.
      await drain({ ...at, queue: at.queue.splice(0, 1) }, 0).catch(() => undefined);
      const [delivery] = await deliveries(at);
      const place = `${status} ${JSON.stringify(retryAfter)}`;
      const wanted = gapMs ?? nextGapMs(delivery?.id ?? "", 1, undefined, START, 1) ?? 0;
      expect(delivery, place).toMatchObject({ state: "waiting", attempt: 2 });
      expect(Date.parse(delivery?.dueAt ?? "") - START, place).toBe(Math.floor(wanted));
      await drain(at);
      if (status === 410) {
        expect(at.posts, place).toHaveLength(1);
        await resumeWebhook(
          contextOn(db.direct, { now: () => at.clock }),
          at.context.queue,
          at.companyId,
          at.webhookId,
        );
        await drain(at);
      }
      expect(at.posts, place).toHaveLength(2);
      expect(at.clock - START, place).toBeGreaterThanOrEqual(Math.floor(wanted));
      expect(await expectReconciled(at, place), place).toMatchObject({ matched: 1, delivered: 1, attempts: 2 });
    }
  },
);
