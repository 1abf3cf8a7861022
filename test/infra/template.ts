/** Synthesizes the CloudFormation templates for the tests in this folder, and searches them. */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as z from "zod/mini";
import { basemapOf } from "../../infra/edge/console-site.ts";
import { capacityOf } from "../../infra/settings/capacity.ts";
import type { DeployConfig } from "../../infra/settings/config.ts";
import { standardRetention } from "../../infra/settings/retention.ts";
import {
  CloudFormationTemplate,
  emptyBundles,
  synthesize,
  type TemplateResource,
  type Templates,
} from "../../infra/synth.ts";
import { onceInRun } from "../harness/once.ts";

export const ownIdentity: DeployConfig = {
  audience: [],
  webhookUrlPolicy: "public",
  timeScale: 1,
  capacity: capacityOf({ preset: "production" }),
  webAcl: true,
  retention: standardRetention,
  alarmEmail: "operator@example.com",
  rollout: "at-once",
  serverTiming: false,
  watch: { runbook: "docs/runbook.md", canary: true },
  allowedOrigins: ["https://app.example.com"],
};

/** The settings of `ownIdentity`, and copies by AWS Backup as in the preset `production`. */
export const withBackups: DeployConfig = { ...ownIdentity, backup: { dailyDays: 7, monthlyDays: 365 } };

// Each of the next deployments combines several independent settings, because each synthesis takes a second of processor time.

/** No page of another origin may use the API, another issuer signs the tokens, and the quota is just above the minimum. */
export const closed: DeployConfig = {
  ...ownIdentity,
  allowedOrigins: [],
  issuer: "https://issuer.example",
  audience: ["app"],
  capacity: capacityOf({ preset: "production", accountConcurrency: 345 }),
};

/** The preset `small`, with which a deployment has no web ACL. */
export const small: DeployConfig = { ...ownIdentity, capacity: capacityOf({ preset: "small" }), webAcl: false };

/** No scheduled smoke test, and a runbook of the operator. */
export const withoutCanary: DeployConfig = {
  ...ownIdentity,
  watch: { runbook: "https://git.example.com/runbook", canary: false },
};

export const withConsole: DeployConfig = { ...ownIdentity, allowedOrigins: [], console: {} };

/** A console whose users sign in at another issuer. The account has a large quota, and a company may send half of all requests. */
export const consoleOfIssuer: DeployConfig = {
  ...ownIdentity,
  issuer: "https://id.example.com",
  audience: ["app"],
  jwksUri: "https://keys.example/jwks",
  console: { clientId: "web", secretParameter: "/canvassing/console-secret", scope: "api" },
  capacity: capacityOf({ preset: "production", accountConcurrency: 7_000, companyRate: 500 }),
};

/** The settings with which a deployment has the most resources. */
export const largest: DeployConfig = {
  ...withBackups,
  capacity: capacityOf({ preset: "production", warmEnvironments: 1 }),
  rollout: "canary",
  domain: {
    name: "api.example.com",
    certificate: "arn:aws:acm:eu-west-1:123456789012:certificate/1234abcd",
    keepsDefaultEndpoint: true,
  },
  console: {
    domain: { name: "app.example.com", certificate: "arn:aws:acm:us-east-1:123456789012:certificate/1234abcd" },
    basemap: basemapOf("https://maps.example.com/style.json"),
  },
};

export type Fields = Readonly<Record<string, unknown>>;

interface Found {
  readonly id: string;
  readonly properties: Fields;
  readonly resource: TemplateResource;
}

export type Template = ReturnType<typeof searchable>;

/** The templates that this process has used, by their settings. Most test files need the same few templates. */
const syntheses = new Map<string, Promise<Template>>();

/** Returns the templates for these settings. Several tests get the same object, so a test must not change it. */
export function synthesized(config: DeployConfig = ownIdentity): Promise<Template> {
  const key = JSON.stringify(config);
  const made = syntheses.get(key) ?? writtenOnce(key, config).then(searchable);
  syntheses.set(key, made);
  return made;
}

const Written = z.object({
  directory: z.string(),
  stacks: z.object({ data: CloudFormationTemplate, service: CloudFormationTemplate }),
});
type Written = z.infer<typeof Written>;

async function written(config: DeployConfig): Promise<Written> {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-template-"));
  return { directory, stacks: await synthesize(config, directory, emptyBundles) };
}

/** Synthesizes the templates once in a run of the tests, whose workers share the temporary directory. */
async function writtenOnce(key: string, config: DeployConfig): Promise<Written> {
  if (process.env.VITEST === undefined) return written(config);
  const name = `templates-${createHash("sha256").update(key).digest("hex")}`;
  const file = join(tmpdir(), `${name}.json`);
  await onceInRun(name, async () => writeFileSync(file, JSON.stringify(await written(config))));
  return z.parse(Written, JSON.parse(readFileSync(file, "utf8")));
}

function searchable({ directory, stacks }: Written) {
  /** The resources of both stacks. The service stack's imports are replaced by the exported values. */
  const resources = { ...stacks.data.Resources, ...withImports(stacks) };
  /** Returns the logical ids and properties of all resources of a type. */
  const all = (type: string): Found[] =>
    Object.entries(resources)
      .filter(([, resource]) => resource.Type === type)
      .map(([id, resource]) => ({ id, properties: resource.Properties, resource }));
  function only(type: string): Found {
    const [found, ...more] = all(type);
    if (found === undefined || more.length > 0) throw new Error(`the template has no or several ${type}`);
    return found;
  }
  /** Returns the Lambda function whose bundle is built from this source file. */
  function functionOf(file: string): Found {
    const found = all("AWS::Lambda::Function").find(({ resource }) => resource.Metadata.file === file);
    if (found === undefined) throw new Error(`the template has no function ${file}`);
    return found;
  }
  const variablesOf = (file: string): unknown => at(functionOf(file).properties, "Environment", "Variables");
  /** Returns the statements of all policies of this function's role. */
  const statementsOf = (file: string): readonly unknown[] =>
    listed(resources[target(functionOf(file).properties.Role) ?? ""]?.Properties.Policies).flatMap((policy) =>
      listed(at(policy, "PolicyDocument", "Statement")),
    );
  /** Returns the logical id of the Lambda function that a value refers to, directly or by an alias. */
  function invokedBy(value: unknown): string | undefined {
    const id = target(value);
    const resource = resources[id ?? ""];
    return resource?.Type === "AWS::Lambda::Alias" ? target(resource.Properties.FunctionName) : id;
  }
  /** The outputs of the service stack, which clients and operators read. */
  const outputs = stacks.service.Outputs;
  return { resources, outputs, stacks, directory, all, only, functionOf, variablesOf, statementsOf, invokedBy };
}

function withImports({ data, service }: Templates): CloudFormationTemplate["Resources"] {
  const exported = new Map(Object.values(data.Outputs).map(({ Export, Value }) => [Export?.Name, Value]));
  const text = JSON.stringify(service.Resources, (_, value: unknown) => {
    const name = at(value, "Fn::ImportValue");
    if (name === undefined) return value;
    if (exported.has(String(name))) return exported.get(String(name));
    throw new Error(`${String(name)} is not exported`);
  });
  return CloudFormationTemplate.shape.Resources.parse(JSON.parse(text));
}

/** Returns the value at a path of keys and array indexes, or undefined if the value does not exist. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((place, step) => (isFields(place) ? place[step] : undefined), value);
}

export function isFields(value: unknown): value is Record<string | number, unknown> {
  return typeof value === "object" && value !== null;
}

export const listed = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined ? [] : [value];

export function target(value: unknown): string | undefined {
  const id = at(value, "Ref") ?? at(value, "Fn::GetAtt", 0);
  return typeof id === "string" ? id : undefined;
}

/** Returns the text of a `Fn::Join`. A reference to a resource is written as `<logical id>`. */
export function joined(value: unknown): string {
  const [separator, parts] = listed(at(value, "Fn::Join"));
  return listed(parts)
    .map((part) => (typeof part === "string" ? part : `<${target(part)}>`))
    .join(String(separator));
}
