/**
 * Starts a DynamoDB server for the tests of one file, and stops it after the last test. A test can plan faults of this server. The plan is
 * deleted before each test.
 */
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type FaultyDynamoDb, pass, startFaultyDynamoDb } from "./faulty-dynamodb.ts";

/**
 * Returns the server of a test file. Call this function once, at the top of the file. With the scope `test`, each test begins with an empty
 * table. Tests of code that reads the rows of all companies need this scope.
 */
export function faultyDynamoDb(scope: "file" | "test" = "file"): FaultyDynamoDb {
  const [before, after] = scope === "file" ? [beforeAll, afterAll] : [beforeEach, afterEach];
  let started: FaultyDynamoDb | undefined;
  before(async () => {
    started = await startFaultyDynamoDb();
  });
  after(() => started?.stop());
  beforeEach(() => started?.plan(() => pass));
  const server = (): FaultyDynamoDb => {
    if (started === undefined) throw new Error("the faulty DynamoDB starts before the tests of the file");
    return started;
  };
  return {
    get endpoint() {
      return server().endpoint;
    },
    get table() {
      return server().table;
    },
    get sdk() {
      return server().sdk;
    },
    get direct() {
      return server().direct;
    },
    get directEndpoint() {
      return server().directEndpoint;
    },
    get calls() {
      return server().calls;
    },
    plan: (next) => server().plan(next),
    keysOf: (partition) => server().keysOf(partition),
    stop: () => server().stop(),
  };
}
