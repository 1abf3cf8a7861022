/** Tests that docs/runbook.md has a section for each alarm and no other ones, and that the commands in the sections can be run. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Metric } from "aws-cdk-lib/aws-cloudwatch";
import { Topic } from "aws-cdk-lib/aws-sns";
import { Stack } from "aws-cdk-lib/core";
import { beforeAll, describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { root } from "../../infra/build/bundle.ts";
import { readConfig } from "../../infra/settings/config.ts";
import { alarm, anchorOf, sendAlarms } from "../../infra/stack/alarms.ts";
import { createApp } from "../../infra/synth.ts";
import { synthesized, type Template } from "./template.ts";

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

let template: Template;
beforeAll(async () => {
  template = await synthesized();
});

const descriptions = () =>
  template
    .all("AWS::CloudWatch::Alarm")
    .map(({ id, properties }) => ({ id, text: String(properties.AlarmDescription) }));

describe("the runbook", () => {
  it("has exactly one part for each alarm, and the alarm names it after one sentence of impact", () => {
    const anchors = descriptions().map(({ id, text }) => {
      const [, anchor] = /^[A-Z][^.]{30,}\. Runbook: docs\/runbook\.md#([a-z-]+)$/.exec(text) ?? [];
      expect(anchor, `${id}: ${text}`).toBeDefined();
      return anchor;
    });
    expect(anchors.toSorted()).toEqual(parts.map(({ title }) => anchorOf(title)).toSorted());
  });

  it.each(parts)(
    "says of '$title' what an operator sees, what users notice, what to do and by which command",
    (part) => {
      const { text, commands } = part;
      expect(text).toMatch(/^\*\*You see:\*\* \w.+?^\*\*Users:\*\* \w.+?^\*\*Do:\*\* \w/ms);
      expect(commands.length).toBeGreaterThan(0);
    },
  );

  it("can be somewhere else: a setting names its address", () => {
    const stack = new Stack(createApp({ outdir: mkdtempSync(join(tmpdir(), "canvassing-runbook-")) }), "Alarms");
    const metric = new Metric({ namespace: "Any", metricName: "Any" });
    const made = alarm(stack, "Alarm", { metric, threshold: 0, title: "Server errors", impact: "Requests fail." });
    sendAlarms(stack, new Topic(stack, "Topic"), "https://git.example.com/runbook");
    expect(made.node.defaultChild).toMatchObject({
      alarmDescription: "Requests fail. Runbook: https://git.example.com/runbook#server-errors",
    });
  });
});

const Package = z.object({ scripts: z.record(z.string(), z.string()) });
const { scripts } = Package.parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));

/** The environment of an operator who has neither AWS nor a local service. A command then ends after it has read its arguments. */
const { PATH, NODE_COMPILE_CACHE } = process.env;
const nowhere = { PATH, NODE_COMPILE_CACHE, HOME: tmpdir(), PORT: "9", AWS_EC2_METADATA_DISABLED: "true" };

/** Replaces the placeholders that an operator fills in. */
const filled = (command: string): string =>
  command.replace("--company N", "--company 1").replace("URL", "http://127.0.0.1:9");

const WRONG_USAGE = 2;

/** Returns the fault in the arguments of a command of this project, or an empty text. */
function faultOfScript(name: string, args: readonly string[]): string {
  const [node, file = "", ...given] = (scripts[name] ?? "").split(" ");
  if (node !== "node") return `no script is named ${name}`;
  const run = spawnSync(process.execPath, [file, ...given, ...args], { cwd: root, encoding: "utf8", env: nowhere });
  // A command ends with exit code 2 if it does not know its arguments. Otherwise it ends with another error, because it finds no
  // deployment.
  return run.status === 0 || run.status === WRONG_USAGE ? `${run.status}: ${run.stderr}` : "";
}

let cdkOptions = "";
beforeAll(() => {
  cdkOptions = spawnSync(join(root, "node_modules/.bin/cdk"), ["deploy", "--help"], {
    cwd: root,
    encoding: "utf8",
  }).stdout;
});

/** Returns the fault in a deployment command: an option that `cdk deploy` does not have, or an unknown setting. */
function faultOfDeployment(args: readonly string[]): string {
  const options = args.filter((arg) => arg.startsWith("-"));
  const unknown = options.filter((option) => !new RegExp(`(?:^|\\s)${option}[\\s,]`, "m").test(cdkOptions));
  if (unknown.length > 0) return `cdk deploy has no option ${unknown}`;
  const context = args.flatMap((arg, at) => (args[at - 1] === "-c" ? [arg.split("=")] : []));
  try {
    readConfig(Object.fromEntries(context));
    return "";
  } catch (error) {
    return String(error);
  }
}

function faultOf(command: string): string {
  const [program, subcommand, name = "", ...args] = filled(command).split(" ");
  if (program === "npm" && subcommand === "run") return faultOfScript(name, args.slice(1));
  if (program === "npx" && subcommand === "cdk" && name === "deploy") return faultOfDeployment(args);
  return "this test does not know the command";
}

describe("the commands of the runbook", () => {
  it.each([...new Set(parts.flatMap(({ commands }) => commands))])("%s exists and accepts its arguments", (command) => {
    expect(faultOf(command)).toBe("");
  });

  it.each([
    "npm run dead-letters -- redrive nothing",
    "npm run webhooks -- reconcile --companies N",
    "npm run no-such-script -- list",
    "npx cdk deploy --everything",
    "npx cdk deploy --all -c deliverySender=50",
    "rm -rf /",
  ])("would not pass this test if one were '%s'", (command) => {
    expect(faultOf(command)).not.toBe("");
  });
});
