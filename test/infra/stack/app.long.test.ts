/** Tests the CDK app as the command line runs it: cdk-nag and CloudFormation's rules must find nothing in its templates. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { root } from "../../../infra/build/bundle.ts";

/** The report of the rule packs. It lists only packs with findings that the app does not accept. */
const Report = z.object({ pluginReports: z.array(z.unknown()) });

/** The stacks of the manifest have the tags that `cdk` passes to CloudFormation. */
const Tagged = z.looseObject({ tags: z.optional(z.record(z.string(), z.string())) });
const Manifest = z.object({ artifacts: z.record(z.string(), z.looseObject({ properties: z.optional(Tagged) })) });

const { PATH, NODE_COMPILE_CACHE } = process.env;

/** Runs the app with this context as the command `cdk` does, without settings of AWS except those in `environment`. */
function synth(context: object, environment: NodeJS.ProcessEnv = {}, cwd = root) {
  const outdir = mkdtempSync(join(tmpdir(), "canvassing-app-"));
  const own = { CDK_OUTDIR: outdir, CDK_CONTEXT_JSON: JSON.stringify(context) };
  const env = { PATH, NODE_COMPILE_CACHE, ...environment, ...own };
  return { outdir, ...spawnSync(process.execPath, [join(root, "infra/app.ts")], { cwd, encoding: "utf8", env }) };
}

const alarmEmail = "operator@example.com";
const identities = [
  {
    identity: "its own user pool",
    context: {
      preset: "production",
      alarmEmail,
      stage: "test",
      console: "true",
      monthlyBudget: "100",
      tags: "CostCenter=42, Team=Field",
      domain: "api.example.com",
      certificate: "arn:aws:acm:eu-west-1:123456789012:certificate/1234abcd-12ab-34cd-56ef-1234567890ab",
    },
  },
  { identity: "another issuer", context: { alarmEmail, issuer: "https://id.example.com", audience: "web,mobile" } },
  {
    identity: "what another deployment left",
    context: {
      alarmEmail,
      table: "Left",
      bucket: "left-bucket",
      secretsKey: "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
      userPool: "eu-west-1_Left",
      userPoolClient: "left",
    },
  },
];

describe("cdk synth", () => {
  it.each(identities)(
    "with $identity passes the rule packs and CloudFormation's rules without a warning",
    ({ context }) => {
      const { outdir, status, stderr } = synth(context);
      expect([status, stderr]).toEqual([0, ""]);
      const { pluginReports } = Report.parse(JSON.parse(readFileSync(join(outdir, "validation-report.json"), "utf8")));
      // Leaves out the finding that the files of the console are not built, because they may be missing on this machine.
      const findings = pluginReports.filter((one) => !JSON.stringify(one).includes("The console is not built"));
      expect(findings).toEqual([]);
      const { artifacts } = Manifest.parse(JSON.parse(readFileSync(join(outdir, "manifest.json"), "utf8")));
      const tags = Object.values(artifacts).flatMap(({ properties }) =>
        properties?.tags === undefined ? [] : [properties.tags],
      );
      const both = { CostCenter: "42", Team: "Field" };
      expect(tags).toEqual("tags" in context ? [both, both] : []);
    },
  );

  it("refuses a mistyped setting in one line, before it builds", () => {
    const cwd = mkdtempSync(join(tmpdir(), "canvassing-clone-"));
    writeFileSync(join(cwd, "settings.json"), '{"tabel": "Left"}');
    const { outdir, status, stdout, stderr } = synth({}, {}, cwd);
    const line = "settings.json: tabel: unknown, perhaps table; docs/settings.md lists all settings\n";
    expect({ status, stdout, stderr }).toEqual({ status: 1, stdout: "", stderr: line });
    expect(readdirSync(outdir)).not.toContain("bundles");
  });

  it.each([[{ CDK_DEFAULT_REGION: "eu-west-1", AWS_REGION: "us-east-2" }], [{ AWS_REGION: "eu-west-1" }]])(
    "refuses a certificate of another region than the deployment, which %j names",
    (environment) => {
      const certificate = "arn:aws:acm:us-east-2:123456789012:certificate/1234abcd";
      const { status, stdout, stderr } = synth({ domain: "api.example.com", certificate }, environment);
      expect([status, stdout, stderr.split("\n").length]).toEqual([1, "", 2]);
      expect(stderr).toContain(
        "context key certificate: its region is us-east-2, and the deployment's region is eu-west-1;",
      );
    },
  );
});
