/**
 * Tests that the retention settings change how long logs, the files of imports and the recovery data of the table are kept, and nothing
 * else.
 */
import { expect, it } from "vitest";
import { readConfig } from "../../../infra/settings/config.ts";
import { at, listed, synthesized, type Template } from "../template.ts";

const logDays = (from: Template) => from.all("AWS::Logs::LogGroup").map(({ properties }) => properties.RetentionInDays);
const daysOf = (from: Template) =>
  Object.fromEntries(
    from
      .all("AWS::S3::Bucket")
      .flatMap(({ properties }) => listed(at(properties, "LifecycleConfiguration", "Rules")))
      .flatMap((rule) =>
        at(rule, "ExpirationInDays") === undefined ? [] : [[at(rule, "Id"), at(rule, "ExpirationInDays")]],
      ),
  );

it("logs, files of imports and the recovery of the table are kept as long as the settings say", async () => {
  const kept = { logDays: "14", importFileDays: "400", recoveryDays: "7", alarmEmail: "operator@example.com" };
  const template = await synthesized(readConfig(kept));
  expect(new Set(logDays(template))).toEqual(new Set([14]));
  // The link to an exported file must work for seven days, so the file is kept for eight days, whatever the settings are.
  expect(daysOf(template)).toMatchObject({ uploads: 400, imports: 400, exports: 8 });
  const [table] = template.all("AWS::DynamoDB::Table");
  expect(at(table?.properties, "PointInTimeRecoverySpecification", "RecoveryPeriodInDays")).toBe(7);
});

it("without a setting, logs are kept for 90 days, and API Gateway's own log for 30", async () => {
  const template = await synthesized();
  expect(new Set(logDays(template))).toEqual(new Set([90, 30]));
  expect(daysOf(template)).toMatchObject({ uploads: 30, imports: 30, exports: 8 });
});
