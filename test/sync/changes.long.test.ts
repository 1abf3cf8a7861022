/** Tests with 2 000 random sequences of writes to records of all types that clients of `GET /api/changes` hold exactly what the lists show. */
import fc from "fast-check";
import { test } from "vitest";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { Run, scripts } from "./changes-law.ts";
import { newTimedStage } from "./stage.ts";

const db = faultyDynamoDb();

test("clients hold what the lists show, after 2 000 random sequences", async () => {
  await fc.assert(
    fc.asyncProperty(scripts, async (groups) => new Run(await newTimedStage(db)).play(groups)),
    { numRuns: 2_000 },
  );
}, 3_600_000);
