/**
 * Tests that an import continues when the local service is killed during the import and started again. Each row must be imported once.
 * Another function may continue only after the lease of the killed function has expired, which takes two minutes. This test does not wait:
 * it changes the stored end of the lease while no service runs. `restart.long.test.ts` waits.
 */
import { join } from "node:path";
import { expect, test } from "vitest";
import * as keys from "#shared/db/keys.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { StoredImport } from "#shared/jobs/import/stored.ts";
import { startDynamoDb } from "../../infra/local/engines/dynamodb.ts";
import { documentsAt } from "../../infra/local/servers/clients.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { directory, expectWhole, pause, start, upload } from "./restarted-service.ts";

/** Number of rows. The import writes them in batches of 2 048, so they need two batches, and the service can be killed between them. */
const ROWS = 4_000;

const storedIn = async (table: Table, companyId: number, id: number): Promise<StoredImport> =>
  StoredImport.parse(await table.get(keys.import(companyId, id)));

/** Waits until the first prospect of the import is in the table. */
async function untilWriting(table: Table, companyId: number, id: number): Promise<void> {
  for (;;) {
    const first = (await storedIn(table, companyId, id)).job?.first?.prospect;
    if (first !== undefined && (await table.get(keys.prospect(companyId, first))) !== undefined) return;
    await pause(5);
  }
}

/** Changes the stored times of the import, as if two minutes had passed since its last write. No service may run meanwhile. */
async function expireLease(tableName: string, companyId: number, id: number): Promise<void> {
  const server = await startDynamoDb(join(directory, "tables.db"));
  const table = openTable(tableName, documentsAt(server.endpoint));
  const { state, runsUntil } = await storedIn(table, companyId, id);
  expect(state).toBe("running");
  expect(runsUntil).toBeGreaterThan(Date.now());
  const past = Date.now() - 60_000;
  const set = { runsUntil: past, dueAt: new Date(past).toISOString() };
  await table.write({ update: keys.import(companyId, id), change: { set } });
  await server.stop();
}

test("an import that SIGKILL cuts off continues after the next start, and imports each row once", async () => {
  const killed = await start();
  const { TableName, DynamoDbEndpoint } = killed.outputs;
  const companyId = present(dataOf(await killed.api.GET("/api/me")).company).id;
  const id = await upload(killed, "Killed", ROWS);
  await untilWriting(openTable(TableName, documentsAt(DynamoDbEndpoint)), companyId, id);
  await killed.end("SIGKILL");
  await expireLease(TableName, companyId, id);

  const restarted = await start();
  await expectWhole(restarted, id, "Killed", ROWS);
  await restarted.end("SIGTERM");
});
