/** Implements `npm run permissions`: writes the tables of docs/permissions.md, and a policy for each person into docs/policies/. */
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { families } from "#shared/db/keys.ts";
import { filled, row, table, writeGenerated } from "../build/generated.ts";
import { runCommand } from "../cli/command/options.ts";
import { OneOrMany, Policies, type Statement } from "../release/rights.ts";
import { folderNames } from "../routes/route.ts";
import { type DeployConfig, readConfig } from "../settings/config.ts";
import { type CloudFormationTemplate, roleOfFunction, templatesWithoutCode } from "../synth.ts";
import { code, peopleParts, persons, policyFile, policyText } from "./people.ts";
import { familyReasons, folderReasons, otherReasons } from "./reasons.ts";

export const DOCUMENT = "docs/permissions.md";

const Role = z.looseObject({
  AssumeRolePolicyDocument: z.object({
    Statement: z.array(z.looseObject({ Principal: z.record(z.string(), z.unknown()) })),
  }),
  Policies,
  ManagedPolicyArns: z._default(z.array(z.unknown()), []),
});

type Resources = CloudFormationTemplate["Resources"];

interface Right {
  readonly on: string;
  readonly actions: readonly string[];
  /** Undefined for rights to rows of the DynamoDB table, because docs/permissions.md explains the kinds of rows in a list of their own. */
  readonly reason?: string;
}

function rolesOf(resources: Resources) {
  const all = Object.entries(resources);
  if (all.some(([, { Type }]) => Type === "AWS::IAM::Policy"))
    throw new Error("a role has a policy of its own resource");
  return all
    .filter(([, { Type }]) => Type === "AWS::IAM::Role")
    .map(([id, { Properties }]) => {
      const { AssumeRolePolicyDocument, Policies: own, ManagedPolicyArns } = z.parse(Role, Properties);
      const principals = AssumeRolePolicyDocument.Statement.flatMap(({ Principal }) => Object.values(Principal));
      const statements = own.flatMap(({ PolicyDocument }) => PolicyDocument.Statement);
      return {
        id,
        service: principals.map(String).join(", "),
        rights: statements.flatMap((statement) => rightsOf(id, statement)),
        managed: ManagedPolicyArns.map((arn) => /policy\/([\w/-]+)/.exec(JSON.stringify(arn))?.[1] ?? String(arn)),
      };
    });
}

const familyOf = new Map<unknown, string>(Object.entries(families).map(([name, pattern]) => [pattern, name]));

/** Returns the rights that a policy statement grants, each with its reason. Throws an error if reasons.ts has no reason for a right. */
function rightsOf(id: string, { Action, Resource, Condition }: Statement): Right[] {
  const keys = Condition?.["ForAllValues:StringLike"]?.["dynamodb:LeadingKeys"];
  if (keys !== undefined) {
    const actions = Action.map((action) => action.replace("dynamodb:", ""));
    return z.parse(OneOrMany, keys).map((pattern) => {
      const family = familyOf.get(pattern);
      if (family === undefined) throw new Error(`${id}: no family of keys has the pattern ${pattern}`);
      return { on: family, actions };
    });
  }
  const objects = /"\/(\w+)\/\*"/.exec(JSON.stringify(Resource))?.[1];
  const folder = folderNames.find((name) => name === objects);
  if (folder !== undefined) {
    const actions = Action.map((action) => action.replace("s3:", ""));
    return [{ on: `bucket: ${folder}/`, actions, reason: folderReasons[folder] }];
  }
  const byReason = Map.groupBy(Action, (action) => {
    const found = otherReasons.find((other) => other.action.test(action));
    if (found === undefined) throw new Error(`${id}: ${action} has no reason in infra/security/reasons.ts`);
    return found.reason;
  });
  return [...byReason].map(([reason, actions]) => ({ on: resourceName(id, Resource), actions, reason }));
}

/** Combines the rights to the same target, and then the rights to rows of the table with the same actions. */
function merged(rights: readonly Right[]): Right[] {
  const targets = [...Map.groupBy(rights, ({ on, reason }) => `${on} ${reason}`).values()].map((same) => {
    const actions = new Set(same.flatMap((one) => one.actions));
    return { ...at(same, 0), actions: [...actions].toSorted() };
  });
  const rows = Map.groupBy(targets, ({ on, reason, actions }) =>
    reason === undefined ? actions.join() : `${on} ${reason}`,
  );
  return [...rows.values()].flatMap((same) =>
    at(same, 0).reason === undefined ? { ...at(same, 0), on: `table: ${same.map(({ on }) => on).join(", ")}` } : same,
  );
}

const resourceNames: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/ParkedRecords/, "queue of poison records"],
  [/UnflushedIndexes/, "queue of failed flushes"],
  [/DeliveriesQueue|Deliveries\w*Queue/, "delivery queue"],
  [/ImportsQueue/, "import queue"],
  [/ExportsQueue/, "export queue"],
  [/BulkJobsQueue/, "queue of bulk jobs"],
  [/StreamArn/, "the table's stream"],
  [/SecretsKey/, "key of secrets"],
  [/UserPool/, "user pool"],
  [/AccessLog|Logs|LogGroup/, "log group"],
  [/parameter\/.*canary/, "parameter of the canary"],
  [/Files/, "bucket"],
  [/Function/, "functions of the API"],
];

/** Returns the name that docs/permissions.md uses for a resource. Throws an error if no pattern in `resourceNames` matches. */
function resourceName(id: string, resource: unknown): string {
  const text = JSON.stringify(resource);
  const name = resourceNames.find(([pattern]) => pattern.test(text))?.[1];
  if (name === undefined) throw new Error(`${id}: ${text} has no name in infra/security/permissions.ts`);
  return name;
}

const isOwnLog = ({ actions }: Right): boolean => actions.every((action) => action.startsWith("logs:"));

/** Returns the tables of docs/permissions.md. `resources` are those of the data stack and the service stack. */
export function permissionTables(resources: Resources): Readonly<Record<string, string>> {
  const roles = rolesOf(resources).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const fileOf = new Map(
    Object.values(resources).flatMap((resource) => {
      const role = roleOfFunction(resource);
      return role === undefined ? [] : [[role, String(resource.Metadata.file)] as const];
    }),
  );
  const functions = roles.flatMap(({ id, rights }) => {
    const file = fileOf.get(id);
    const found = merged(rights).filter((right) => !isOwnLog(right));
    const listed = found.length > 0 ? found : [{ on: "", actions: [], reason: "needs no rights" }];
    return file === undefined ? [] : [{ file, listed }];
  });
  return {
    rows: table(
      ["pattern", "rows"],
      Object.entries(familyReasons).map((cells) => row(...cells)),
    ),
    functions: table(
      ["function", "on", "actions", "why"],
      functions
        .toSorted((a, b) => (a.file < b.file ? -1 : 1))
        .flatMap(({ file, listed }) =>
          listed.map(({ on, actions, reason = "" }, i) => row(i === 0 ? code([file]) : "", on, code(actions), reason)),
        ),
    ),
    roles: table(
      ["role", "used by", "on", "actions", "why"],
      roles
        .filter(({ id }) => !fileOf.has(id))
        .flatMap(({ id, service, rights, managed }) => [
          ...managed.map((policy) =>
            row(code([id]), service, "AWS's managed policy", code([policy]), "the service requires it"),
          ),
          ...rights.map(({ on, actions, reason = "" }) => row(code([id]), service, on, code(actions), reason)),
        ]),
    ),
    ...peopleParts(),
  };
}

/** The deployment that docs/permissions.md describes: with the roles for backups and step-by-step deployments, but without a console. */
export const documentedDeployment = (): DeployConfig =>
  readConfig({ preset: "production", alarmEmail: "operator@example.com" });

export const main = (args: readonly string[]): Promise<number> =>
  writeGenerated(args, {
    command: "npm run permissions",
    generate: async () => {
      const { data, service } = await templatesWithoutCode(documentedDeployment());
      const tables = permissionTables({ ...data.Resources, ...service.Resources });
      return [
        filled(DOCUMENT, tables),
        ...persons.map((person) => ({ file: policyFile(person), text: policyText(person) })),
      ];
    },
  });

if (import.meta.main) await runCommand(() => main(process.argv.slice(2)));
