/** Tests that the stream's filter drops the prospects and notes that an import creates, and no row that makes an event. */
import { marshall } from "@aws-sdk/util-dynamodb";
import { expect, test } from "vitest";
import { systemClock } from "#shared/clock.ts";
import type { Item } from "#shared/db/expression.ts";
import type { RequestContext } from "#shared/jobs/import/import.ts";
import { publishedPatterns } from "#shared/webhooks/events/row-events.ts";
import { createFilter } from "../../infra/local/sources/event-filter.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { importFile } from "../harness/verbs.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
const passes = createFilter("Publisher", {
  Filters: publishedPatterns().map((pattern) => ({ Pattern: JSON.stringify(pattern) })),
});
const starts = (eventName: "INSERT" | "MODIFY", row: Item): boolean =>
  passes({ eventName, dynamodb: { NewImage: marshall(row, { removeUndefinedValues: true }) } });

/** The rows that an import writes before its prospect becomes visible. */
async function importedRows(): Promise<Item[]> {
  const context = warmFunction(db, systemClock);
  const rows: Item[] = [];
  const batchPut: RequestContext["table"]["batchPut"] = (items) => {
    rows.push(...items);
    return context.table.batchPut(items);
  };
  const objects: RequestContext["objects"] = { put: async () => undefined };
  const { caller } = await newCompany(context);
  const file = Buffer.from("name,lat,lng,address1,city,state,zip,notes\nAnn,1,2,1 A St,Denver,CO,80202,Met her");
  await importFile({ ...context, objects, table: { ...context.table, batchPut } }, caller, file);
  return rows;
}

test("the rows that an import creates start no publisher, and later changes of its prospects do", async () => {
  const rows = await importedRows();
  const [prospect, note] = ["prospect", "note"].map((type) => rows.find((row) => row.type === type) ?? {});
  expect([prospect?.importId, note?.importId]).toEqual([expect.any(String), expect.any(String)]);
  expect(rows.filter((row) => starts("INSERT", row))).toEqual([]);
  expect(starts("MODIFY", prospect ?? {})).toBe(true);
});

test.each(["prospect", "note", "appointment", "territory", "import", "bulkJob"])(
  "a new %s that no import created starts the publisher",
  (type) => {
    expect(starts("INSERT", { type })).toBe(true);
  },
);

test("an imported appointment starts the publisher, because a deletion of an appointment also writes a new row", () => {
  expect(starts("INSERT", { type: "appointment", importId: "1" })).toBe(true);
});
