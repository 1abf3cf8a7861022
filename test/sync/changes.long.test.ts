/**
 * Tests with random sequences of writes to records of all types that clients of `GET /api/changes` hold exactly what the lists show: 2 000
 * with a table that works, and 100 with a table of which every fifth call fails.
 */
import fc from "fast-check";
import { test } from "vitest";
import { contextOn } from "#shared/context.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { pass } from "../harness/faulty-dynamodb.ts";
import { longScripts, Run, type TimedStage } from "./changes-law.ts";
import { oneInFive } from "./one-in-five.ts";
import { newTimedStage } from "./stage.ts";

const db = faultyDynamoDb();

const sound = (): Promise<TimedStage> => newTimedStage(db);

async function faulty(): Promise<TimedStage> {
  db.plan(() => pass);
  const stage = await newTimedStage(db);
  db.plan(oneInFive);
  return { ...stage, disturbed: contextOn(db.table, stage.context.clock) };
}

test.each([
  [2_000, "", sound],
  // Each sequence takes about 90 s, because the clients of the SDK wait before they try again.
  [100, " although every fifth call of the table fails", faulty],
])(
  "clients hold what the lists show, after %d random sequences%s",
  async (numRuns, _, stage) => {
    const play = fc.asyncProperty(longScripts, async (groups) => new Run(await stage()).play(groups));
    // Without shrinking, which takes hours: the seed in the message repeats the sequence.
    await fc.assert(play, { numRuns, endOnFailure: true });
  },
  10_800_000,
);
