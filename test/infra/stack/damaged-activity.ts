/** Makes the activity data of a company unreadable, for the test of the alarms. */
import { expect } from "vitest";
import * as activityKeys from "#shared/db/activity-keys.ts";
import type { Table } from "#shared/db/table.ts";
import type { apiClient } from "../../../docs/client/client.ts";
import { dataOf } from "../../harness/shapes.ts";

const LONGEST_NOTE = 10_000;
/** Number of notes with the maximum length that together start a flush of the search index. */
const NOTES = 7;

/** Damages a row that activity reports and flushes read. Then it requests a report, waits for a flush, and repairs the row. */
export async function withDamagedActivity(
  api: ReturnType<typeof apiClient>,
  table: Table,
  untilFlushed: () => Promise<void>,
): Promise<void> {
  const { company } = dataOf(await api.GET("/api/me"), 200);
  const key = activityKeys.factState(company.id);
  const sound = { ...(await table.get(key)), ...key };
  await table.batchPut([{ ...sound, since: "damaged" }]);
  const query = { from: "2026-01-01", to: "2026-01-02", groupBy: "user" } as const;
  expect((await api.GET("/api/reports/activity", { params: { query } })).response.status).toBe(503);
  const { id } = dataOf(await api.POST("/api/prospects", { body: { name: "Noted" } }), 201);
  const note = { params: { path: { id } }, body: { body: "x".repeat(LONGEST_NOTE) } };
  for (let count = 0; count < NOTES; count++) dataOf(await api.POST("/api/prospects/{id}/notes", note), 201);
  await untilFlushed();
  await table.batchPut([sound]);
}
