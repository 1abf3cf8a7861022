/** Tests the report of an erasure. For each kind of copy of the erased data (logs, backups), the report says until when copies remain. */
import { expect, test } from "vitest";
import { remainsUntil } from "../../../infra/cli/company/erasure.ts";

const erasedAt = "2026-11-01T00:00:00.000Z";

test("the report contains the retention times of the deployment, not those of a standard deployment", () => {
  const standard = remainsUntil(erasedAt, { logDays: 90, recoveryDays: 35, backupDays: 0 });
  expect(standard).toMatchObject({
    "log lines, which have ids and no names": "2027-01-30T00:00:00.000Z",
    "point-in-time recovery of each table": "2026-12-06T00:00:00.000Z",
    "AWS Backup": "the plan makes no copies; copies made by hand, or under earlier settings, may remain longer",
  });
  const long = remainsUntil(erasedAt, { logDays: 1_827, recoveryDays: 7, backupDays: 365 });
  expect(long).toMatchObject({
    "log lines, which have ids and no names": "2031-11-02T00:00:00.000Z",
    "point-in-time recovery of each table": "2026-11-08T00:00:00.000Z",
    "AWS Backup": "2027-11-01T00:00:00.000Z; copies made by hand, or under earlier settings, may remain longer",
  });
});
