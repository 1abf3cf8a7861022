/** Starts a DynamoDB server with planned faults for the tests of one file. The plan is deleted before each test. */
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type FaultyDynamoDb, pass, startFaultyDynamoDb } from "./faulty-dynamodb.ts";

/** Call this function once, at the top of a test file. With the scope `test`, each test has an empty table. */
export function faultyDynamoDb(scope: "file" | "test" = "file"): FaultyDynamoDb {
  const [before, after] = scope === "file" ? [beforeAll, afterAll] : [beforeEach, afterEach];
  let started: FaultyDynamoDb | undefined;
  before(async () => {
    started = await startFaultyDynamoDb();
  });
  after(() => started?.stop());
  beforeEach(() => started?.plan(() => pass));
  // Each field is read from the server of the running test, because the server starts after the test file is loaded.
  return new Proxy(Object.create(null), {
    get(_, name): unknown {
      if (started === undefined) throw new Error("the faulty DynamoDB starts before the tests of the file");
      return Reflect.get(started, name);
    },
  });
}
