/** Starts a faulty DynamoDB for the tests of one file. No fault is planned at the start of each test. It stops after the last test. */
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type FaultyDynamoDb, pass, startFaultyDynamoDb } from "./faulty-dynamodb.ts";

/**
 * Call this once, at the top of a test file. The scope `test` gives each test a separate table, for work that reads the rows of all
 * companies.
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
