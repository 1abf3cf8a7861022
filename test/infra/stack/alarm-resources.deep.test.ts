/**
 * Tests the topic that the alarms notify, the alarm for all functions of the account, and the log filters for unreadable data. The other
 * alarms and filters are in alarms.long.test.ts, which turns each alarm on.
 */
import { describe, expect, it } from "vitest";
import { ActivityUnreadable } from "#shared/company-index/activity/log.ts";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import type { EventFunction } from "../../../infra/routes/route.ts";
import { eventFunctions, routes } from "../../../infra/routes/routes.ts";
import { at, listed, ownIdentity, synthesized, target } from "../template.ts";

const template = await synthesized();

const metricFilters = (name: string) =>
  template
    .all("AWS::Logs::MetricFilter")
    .map(({ properties }) => properties)
    .filter((properties) => at(properties, "MetricTransformations", 0, "MetricName") === name);

describe("alarms", () => {
  it("go to one encrypted topic over TLS, to which CloudWatch may publish and which sends mail", () => {
    const topic = template.only("AWS::SNS::Topic");
    for (const { id, properties } of template.all("AWS::CloudWatch::Alarm")) {
      expect(listed(properties.AlarmActions).map(target), id).toEqual([topic.id]);
      expect(listed(properties.OKActions).map(target), id).toEqual([topic.id]);
    }
    const key = template.resources[target(topic.properties.KmsMasterKeyId) ?? ""];
    expect(key?.Properties.EnableKeyRotation).toBe(true);
    const cloudWatch = { Effect: "Allow", Principal: { Service: "cloudwatch.amazonaws.com" } };
    expect(listed(at(key?.Properties, "KeyPolicy", "Statement"))).toContainEqual(
      expect.objectContaining({ ...cloudWatch, Action: ["kms:Decrypt", "kms:GenerateDataKey*"] }),
    );
    const statements = template
      .all("AWS::SNS::TopicPolicy")
      .flatMap(({ properties }) => listed(at(properties, "PolicyDocument", "Statement")));
    expect(statements).toContainEqual(expect.objectContaining({ ...cloudWatch, Action: "sns:Publish" }));
    expect(statements).toContainEqual(
      expect.objectContaining({ Effect: "Deny", Condition: { Bool: { "aws:SecureTransport": "false" } } }),
    );
    const subscriptions = template.all("AWS::SNS::Subscription").map(({ properties }) => properties);
    expect(subscriptions).toMatchObject([{ Protocol: "email", Endpoint: ownIdentity.alarmEmail }]);
  });

  it("count the functions of other deployments in the account only beside the account's own quota, which CloudWatch reads", () => {
    const ofAccount = template
      .all("AWS::CloudWatch::Alarm")
      .map(({ properties }) => properties)
      .filter(
        ({ Namespace, Metrics, Dimensions }) =>
          (Namespace === "AWS/Lambda" || Metrics !== undefined) && Dimensions === undefined,
      );
    expect(ofAccount).toMatchObject([
      {
        Threshold: 80,
        Metrics: [
          { Expression: "100 * running / SERVICE_QUOTA(running)" },
          {
            Id: "running",
            MetricStat: {
              Metric: { Namespace: "AWS/Lambda", MetricName: "ConcurrentExecutions" },
              Stat: "Maximum",
            },
            ReturnData: false,
          },
        ],
      },
    ]);
  });

  it.each([
    [new IndexUnreadable(), "segments"],
    [new ActivityUnreadable(), "dayFacts"],
  ] as const)("count the lines with %s of every function that reads %s", ({ name }, family) => {
    const filters = metricFilters(name);
    const FilterPattern = `{ ($.message.error = "${name}") || ($.message.cause = "${name}") }`;
    for (const filter of filters) expect(filter).toMatchObject({ FilterPattern });
    const readers = [...routes, ...Object.values<EventFunction>(eventFunctions)].filter(
      ({ access }) => access.table?.[family] !== undefined,
    );
    const groups = readers.map(({ file }) =>
      target(at(template.functionOf(file).properties, "LoggingConfig", "LogGroup")),
    );
    expect(filters.map(({ LogGroupName }) => target(LogGroupName)).toSorted()).toEqual([...new Set(groups)].toSorted());
  });
});
