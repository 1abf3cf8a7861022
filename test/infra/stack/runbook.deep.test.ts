/** Tests that docs/runbook.md has exactly one section for each alarm, and no other sections. */
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Metric } from "aws-cdk-lib/aws-cloudwatch";
import { Topic } from "aws-cdk-lib/aws-sns";
import { Stack } from "aws-cdk-lib/core";
import { describe, expect, it } from "vitest";
import { root } from "../../../infra/build/bundle.ts";
import { anchorOf, ExplainedAlarm, sendAlarms } from "../../../infra/stack/alarms.ts";
import { createApp } from "../../../infra/synth.ts";
import { synthesized, withBackups } from "../template.ts";
import { failures } from "./backup-events.ts";

const RUNBOOK = "docs/runbook.md";

interface Part {
  readonly title: string;
  readonly text: string;
  readonly commands: readonly string[];
}

const [, ...sections] = readFileSync(join(root, RUNBOOK), "utf8").split(/^## /m);
const parts: readonly Part[] = sections.map((section) => ({
  title: section.split("\n")[0] ?? "",
  text: section,
  commands: [...section.matchAll(/^```sh aws\n(.*?)^```$/gms)].flatMap(([, block = ""]) => block.trim().split("\n")),
}));

const template = await synthesized(withBackups);

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
    // Two alarms about the same function may link to the same section of the runbook.
    expect([...new Set(anchors)].toSorted()).toEqual(parts.map(({ title }) => anchorOf(title)).toSorted());
  });

  it.each(parts)(
    "says of '$title' what an operator sees, what users notice, what to do and by which command",
    (part) => {
      const { text, commands } = part;
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
    // The alarm goes off for failed, aborted and expired jobs. With `--by-state`, a command would list only the jobs in one of these
    // states.
    expect(listed).not.toContain("--by-state");
  });

  it("can be somewhere else: a setting names its address", () => {
    const stack = new Stack(createApp({ outdir: mkdtempSync(join(tmpdir(), "canvassing-runbook-")) }), "Alarms");
    const metric = new Metric({ namespace: "Any", metricName: "Any" });
    const made = new ExplainedAlarm(stack, "Alarm", {
      metric,
      threshold: 0,
      title: "Server errors",
      impact: "Requests fail.",
    });
    sendAlarms(stack, new Topic(stack, "Topic"), "https://git.example.com/runbook");
    expect(made.node.defaultChild).toMatchObject({
      alarmDescription: "Requests fail. Runbook: https://git.example.com/runbook#server-errors",
    });
  });
});
