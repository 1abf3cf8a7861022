/** Tests the topic of the alarms, the alarm for the account, the filters for unreadable data, and the sections of docs/runbook.md. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ActivityUnreadable } from "#shared/company-index/activity/log.ts";
import { IndexUnreadable } from "#shared/company-index/encoding.ts";
import { root } from "../../../infra/build/bundle.ts";
import type { EventFunction } from "../../../infra/routes/route.ts";
import { eventFunctions, routes } from "../../../infra/routes/routes.ts";
import { anchorOf } from "../../../infra/stack/alarms.ts";
import { at, listed, ownIdentity, synthesized, target, withBackups, withoutCanary } from "../template.ts";
import { failures } from "./backup-events.ts";

const template = await synthesized(withBackups);

const metricFilters = (name: string) =>
  template
    .all("AWS::Logs::MetricFilter")
    .map(({ properties }) => properties)
    .filter((properties) => at(properties, "MetricTransformations", 0, "MetricName") === name);

describe("alarms", () => {
  it("go to one topic, to which CloudWatch may publish and which sends mail", () => {
    const topic = template.only("AWS::SNS::Topic");
    for (const { id, properties } of template.all("AWS::CloudWatch::Alarm")) {
      expect(listed(properties.AlarmActions).map(target), id).toEqual([topic.id]);
      expect(listed(properties.OKActions).map(target), id).toEqual([topic.id]);
    }
    const key = template.resources[target(topic.properties.KmsMasterKeyId) ?? ""];
    const cloudWatch = { Effect: "Allow", Principal: { Service: "cloudwatch.amazonaws.com" } };
    expect(listed(at(key?.Properties, "KeyPolicy", "Statement"))).toContainEqual(
      expect.objectContaining({ ...cloudWatch, Action: ["kms:Decrypt", "kms:GenerateDataKey*"] }),
    );
    const statements = template
      .all("AWS::SNS::TopicPolicy")
      .flatMap(({ properties }) => listed(at(properties, "PolicyDocument", "Statement")));
    expect(statements).toContainEqual(expect.objectContaining({ ...cloudWatch, Action: "sns:Publish" }));
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
    const Expression = "100 * running / SERVICE_QUOTA(running)";
    const Metric = { Namespace: "AWS/Lambda", MetricName: "ConcurrentExecutions" };
    const running = { Id: "running", MetricStat: { Metric, Stat: "Maximum" }, ReturnData: false };
    expect(ofAccount).toMatchObject([{ Threshold: 80, Metrics: [{ Expression }, running] }]);
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

const RUNBOOK = "docs/runbook.md";

const [, ...sections] = readFileSync(join(root, RUNBOOK), "utf8").split(/^## /m);
const parts = sections.map((section) => ({
  title: section.split("\n")[0] ?? "",
  text: section,
  commands: [...section.matchAll(/^```sh aws\n(.*?)^```$/gms)].flatMap(([, block = ""]) => block.trim().split("\n")),
}));

const descriptions = template
  .all("AWS::CloudWatch::Alarm")
  .map(({ id, properties }) => ({ id, text: String(properties.AlarmDescription) }));

describe("the runbook", () => {
  it("has a part for each alarm and no other parts, and the alarm names it after one sentence of impact", () => {
    const anchors = descriptions.map(({ id, text }) => {
      const [, anchor] = /^[A-Z][^.]{30,}\. Runbook: docs\/runbook\.md#([a-z-]+)$/.exec(text) ?? [];
      expect(anchor, `${id}: ${text}`).toBeDefined();
      return anchor;
    });
    // `Set` removes duplicates, because two alarms about the same function may link to the same section of the runbook.
    expect([...new Set(anchors)].toSorted()).toEqual(parts.map(({ title }) => anchorOf(title)).toSorted());
  });

  it.each(parts)(
    "says of '$title' what an operator sees, what users notice, what to do and by which command",
    ({ text, commands }) => {
      expect(text).toMatch(/^\*\*You see:\*\* \w.+?^\*\*Users:\*\* \w.+?^\*\*Do:\*\* \w/ms);
      expect(commands.length).toBeGreaterThan(0);
    },
  );

  it("lists under 'Copies fail' all jobs of each kind that set off the alarm, whatever their state", () => {
    const listed = parts.find(({ title }) => title === "Copies fail")?.commands.join("\n");
    for (const { "detail-type": type, detail } of failures) {
      const [, kind = ""] = /^(\w+) Job State Change$/.exec(type) ?? [];
      expect(listed, JSON.stringify(detail)).toMatch(new RegExp(`^aws backup list-${kind.toLowerCase()}-jobs `, "m"));
    }
    // The alarm goes off for jobs in several states, and `--by-state` would list only those in one state.
    expect(listed).not.toContain("--by-state");
  });

  it("can be somewhere else: a setting names its address", async () => {
    const [alarm] = (await synthesized(withoutCanary)).all("AWS::CloudWatch::Alarm");
    expect(alarm?.properties.AlarmDescription).toMatch(/ Runbook: https:\/\/git\.example\.com\/runbook#[a-z-]+$/);
  });
});
