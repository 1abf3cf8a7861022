/** Tests what the dashboard shows, the saved queries of the runbook, and the price of alarms, custom metrics and dashboard. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { root } from "../../../infra/build/bundle.ts";
import { prices } from "../../bench/cost/prices.ts";
import { at, joined, listed, synthesized, withBackups } from "../template.ts";
import { customMetrics } from "./custom-metrics.ts";

/** An account's first three dashboards are free with at most this many metrics. */
const FREE_METRICS = 50;

const Widget = z.object({
  type: z.string(),
  properties: z.looseObject({
    title: z.optional(z.string()),
    alarms: z.optional(z.array(z.string())),
    metrics: z._default(z.array(z.array(z.unknown())), []),
    query: z.optional(z.string()),
  }),
});
const Dashboard = z.object({ widgets: z.array(Widget) });

const template = await synthesized(withBackups);
const dashboard = template.only("AWS::CloudWatch::Dashboard").properties;
const body = Dashboard.parse(JSON.parse(joined(dashboard.DashboardBody)));

/** The metrics on the dashboard. Each of them is a text with namespace, name and dimensions. */
const metrics = body.widgets.flatMap(({ properties }) =>
  properties.metrics.map((metric) => metric.filter((part) => typeof part === "string").join(" ")),
);

/** Returns the logical id of an alarm of the service stack, or the name in the ARN of an alarm of the data stack. */
const nameOfAlarm = (shown: string): string => /^<(\w+)>$|:alarm:([\w-]+)$/.exec(shown)?.slice(1).join("") ?? shown;

describe("the dashboard", () => {
  it("has one name for each deployment and region", () => {
    expect(joined(dashboard.DashboardName)).toBe("Canvassing-<AWS::Region>");
  });

  it.each([
    "AWS/ApiGateway Count",
    "AWS/ApiGateway 4XXError",
    "AWS/ApiGateway 5XXError",
    "AWS/ApiGateway Latency",
    "AWS/Lambda Throttles",
    "AWS/Lambda ConcurrentExecutions",
    "AWS/Lambda IteratorAge FunctionName <EventsEventsPublish",
    "AWS/Lambda IteratorAge FunctionName <EventsIndexFlush",
    "AWS/DynamoDB ConsumedReadCapacityUnits",
    "AWS/DynamoDB ConsumedWriteCapacityUnits",
    "AWS/SQS ApproximateAgeOfOldestMessage",
    "Canvassing OldestDueSeconds",
  ])("shows %s", (start) => {
    expect(metrics.filter((metric) => metric.startsWith(start))).not.toEqual([]);
  });

  it("shows the state of each alarm of both stacks", () => {
    const shown = body.widgets.flatMap(({ properties }) => properties.alarms ?? []).map(nameOfAlarm);
    const all = template.all("AWS::CloudWatch::Alarm").map(({ id, properties }) => properties.AlarmName ?? id);
    expect(shown.toSorted()).toEqual(all.map(String).toSorted());
    expect(all).toEqual(
      expect.arrayContaining(["Canvassing-Data-copies-fail", "Canvassing-Data-no-copy-for-two-days"]),
    );
  });

  it("shows the depth of each dead-letter queue, the queues of jobs, and the runs of imports", () => {
    const shown = metrics.filter((metric) => metric.includes("ApproximateNumberOfMessagesVisible"));
    // Six dead-letter queues, and the three queues of imports, exports and bulk jobs.
    expect(shown).toHaveLength(6 + 3);
    const job = metrics.filter((metric) => metric.includes("JobWork"));
    expect(job.map((metric) => metric.split(" ")[1])).toEqual(expect.arrayContaining(["Invocations", "Errors"]));
  });

  it("shows the latency of each route group, failed requests, webhook attempts and errors by queries of the logs", () => {
    const queries = body.widgets.flatMap(({ properties }) =>
      properties.query === undefined ? [] : [properties.title],
    );
    expect(queries).toEqual(["Latency by route group", "Failed requests", "Webhook attempts", "Errors"]);
  });
});

describe("saved queries", () => {
  const names = () => template.all("AWS::Logs::QueryDefinition").map(({ properties }) => String(properties.Name));

  it("exist under each name that the runbook mentions, and the runbook mentions each", () => {
    const runbook = readFileSync(join(root, "docs/runbook.md"), "utf8");
    const mentioned = [...runbook.matchAll(/saved query\s`([^`]+)`/g)].map(([, name]) => `Canvassing/${name}`);
    expect([...new Set(mentioned)].toSorted()).toEqual(names().toSorted());
  });

  it("read logs that the stack has", () => {
    for (const { id, properties } of template.all("AWS::Logs::QueryDefinition")) {
      const groups = listed(properties.LogGroupNames).map((group) => String(at(group, "Ref")));
      expect(groups.length, id).toBeGreaterThan(0);
      for (const group of groups) expect(template.resources[group]?.Type, id).toBe("AWS::Logs::LogGroup");
    }
  });
});

it("the cost of watching is stated in docs/deploy.md: alarms, custom metrics, and a dashboard that is free", () => {
  const alarms = template.all("AWS::CloudWatch::Alarm").length;
  const custom = customMetrics(template).size;
  const { alarmMonth, metricMonth } = prices.cloudWatch;
  const dollars = (alarms * alarmMonth + custom * metricMonth).toFixed(2);
  const text = readFileSync(join(root, "docs/deploy.md"), "utf8").replaceAll(/\s+/g, " ");
  const stated = /\d+ alarms, at most \d+ custom metrics and one dashboard cost at most \$[\d.]+ a month/.exec(
    text,
  )?.[0];
  expect(stated).toBe(
    `${alarms} alarms, at most ${custom} custom metrics and one dashboard cost at most $${dollars} a month`,
  );
  expect(new Set(metrics).size).toBeLessThanOrEqual(FREE_METRICS);
});
