/**
 * Implements `npm run permissions`. It writes docs/permissions.md, which contains the rights of each function and role with the reasons for
 * them, and the rights of the people who operate a deployment. The rights of functions and roles are read from the templates. It also
 * writes a policy for each person into docs/policies/. With `--check`, the command writes nothing, and fails if a committed file is out of
 * date.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import * as z from "zod/mini";
import { families } from "#shared/db/keys.ts";
import { root } from "../build/bundle.ts";
import { exitCodes, optionsOf, runCommand } from "../command/options.ts";
import { folderNames } from "../routes/route.ts";
import { type DeployConfig, readConfig } from "../settings/config.ts";
import { OneOrMany, Statement } from "../stack/policy-statement.ts";
import { familyReasons, folderReasons, otherReasons } from "../stack/reasons.ts";
import { type CloudFormationTemplate, synthesize } from "../synth.ts";
import { peopleSection, persons, policyFile, policyText } from "./people.ts";

export const DOCUMENT = "docs/permissions.md";

const Inline = z.object({ PolicyDocument: z.object({ Statement: z.array(Statement) }) });
const RoleProperties = z.looseObject({
  AssumeRolePolicyDocument: z.object({
    Statement: z.array(z.looseObject({ Principal: z.record(z.string(), z.unknown()) })),
  }),
  Policies: z._default(z.array(Inline), []),
  ManagedPolicyArns: z._default(z.array(z.unknown()), []),
});
const AttachedPolicy = z.looseObject({
  Roles: z.array(z.object({ Ref: z.string() })),
  PolicyDocument: z.object({ Statement: z.array(Statement) }),
});
const RoleOf = z.object({ Role: z.object({ "Fn::GetAtt": z.tuple([z.string(), z.literal("Arn")]) }) });

type Resources = CloudFormationTemplate["Resources"];

interface Role {
  readonly id: string;
  readonly service: string;
  readonly statements: readonly Statement[];
  readonly managed: readonly string[];
}

/** A row of the document's table. */
interface Right {
  readonly on: string;
  readonly actions: readonly string[];
  /** Undefined for rows of the table, whose contents a table of the document explains. */
  readonly reason?: string;
}

const familyOf = new Map<string, keyof typeof families>();
for (const name of z.array(z.enum(Object.keys(familyReasons))).parse(Object.keys(families))) {
  if (isFamily(name)) familyOf.set(families[name], name);
}

function isFamily(name: string): name is keyof typeof families {
  return Object.hasOwn(families, name);
}

function rolesOf(resources: Resources): Role[] {
  const attached = Object.values(resources)
    .filter(({ Type }) => Type === "AWS::IAM::Policy")
    .map(({ Properties }) => z.parse(AttachedPolicy, Properties));
  return Object.entries(resources)
    .filter(([, { Type }]) => Type === "AWS::IAM::Role")
    .map(([id, { Properties }]) => {
      const { AssumeRolePolicyDocument, Policies, ManagedPolicyArns } = z.parse(RoleProperties, Properties);
      const own = attached.filter(({ Roles }) => Roles.some(({ Ref }) => Ref === id));
      const principals = AssumeRolePolicyDocument.Statement.flatMap(({ Principal }) => Object.values(Principal));
      return {
        id,
        service: principals.map(String).join(", "),
        statements: [...Policies, ...own].flatMap(({ PolicyDocument }) => PolicyDocument.Statement),
        managed: ManagedPolicyArns.map(
          (arn) => /policy\/([\w/-]+)/.exec(JSON.stringify(arn))?.[1] ?? JSON.stringify(arn),
        ),
      };
    });
}

/**
 * Returns the rights that a policy statement grants, each with its reason. Throws an error if infra/stack/reasons.ts contains no reason for
 * a right.
 */
function rightsOf(id: string, statement: Statement): Right[] {
  const keys = statement.Condition?.["ForAllValues:StringLike"]?.["dynamodb:LeadingKeys"];
  if (keys !== undefined) {
    const actions = statement.Action.map((action) => action.replace("dynamodb:", ""));
    return z.parse(OneOrMany, keys).map((pattern) => {
      const family = familyOf.get(pattern);
      if (family === undefined) throw new Error(`${id}: no family of keys has the pattern ${pattern}`);
      return { on: family, actions };
    });
  }
  const objects = /"\/(\w+)\/\*"/.exec(JSON.stringify(statement.Resource))?.[1];
  const folder = folderNames.find((name) => name === objects);
  if (folder !== undefined) {
    const actions = statement.Action.map((action) => action.replace("s3:", ""));
    return [{ on: `bucket: ${folder}/`, actions, reason: folderReasons[folder] }];
  }
  const byReason = Map.groupBy(statement.Action, (action) => {
    const found = otherReasons.find((other) => other.action.test(action));
    if (found === undefined) throw new Error(`${id}: ${action} has no reason in infra/stack/reasons.ts`);
    return found.reason;
  });
  return [...byReason].map(([reason, actions]) => ({ on: resourceName(id, statement.Resource), actions, reason }));
}

/** Combines the rights to the same target, and then the rights to rows of the table with the same actions. */
function merged(rights: readonly Right[]): Right[] {
  const targets = new Map<string, Right>();
  for (const right of rights) {
    const target = `${right.on} ${right.reason}`;
    const actions = new Set([...(targets.get(target)?.actions ?? []), ...right.actions]);
    targets.set(target, { ...right, actions: [...actions].toSorted() });
  }
  const rows = new Map<string, Right>();
  for (const [target, right] of targets) {
    const key = right.reason === undefined ? right.actions.join() : target;
    const known = rows.get(key)?.on ?? "table:";
    rows.set(
      key,
      right.reason === undefined ? { ...right, on: `${known}${known.endsWith(":") ? "" : ","} ${right.on}` } : right,
    );
  }
  return [...rows.values()];
}

/** Patterns of logical ids, each with the name that the document uses for the resource. */
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

const row = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
const rightRows = (name: string, rights: readonly Right[]): string[] =>
  rights.map(({ on, actions, reason }, i) =>
    row([i === 0 ? `\`${name}\`` : "", on, actions.map((action) => `\`${action}\``).join(", "), reason ?? ""]),
  );

/** Returns the text of docs/permissions.md. `resources` contains the CloudFormation resources of the data stack and the service stack. */
export function permissionsDocument(resources: Resources): string {
  const roles = rolesOf(resources);
  const fileOf = new Map(
    Object.values(resources)
      .filter(({ Type }) => Type === "AWS::Lambda::Function")
      .flatMap(({ Properties, Metadata }) => {
        const role = z.safeParse(RoleOf, Properties);
        return role.success ? [[role.data.Role["Fn::GetAtt"][0], String(Metadata.file)] as const] : [];
      }),
  );
  const functions = roles
    .flatMap((role) => (fileOf.has(role.id) ? [{ ...role, file: fileOf.get(role.id) ?? "" }] : []))
    .toSorted((a, b) => (a.file < b.file ? -1 : 1));
  const others = roles.filter(({ id }) => !fileOf.has(id)).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const isOwnLog = ({ actions }: Right): boolean => actions.every((action) => action.startsWith("logs:"));
  return `${[
    "# Permissions",
    "",
    "<!-- `npm run permissions` writes this document from the templates and infra/stack/reasons.ts -->",
    "",
    "Each function has its own IAM role. The first table lists all rights of these roles, except the right to write to the function's own log",
    "group, which every function has. The CloudFormation template limits each right to the rows, the folder, the queue or the key in the column",
    "*on*. [Tests](../test/infra/stack/rights.deep.test.ts) compare the roles with the route table. The API tests fail if a function has a right that",
    "no test uses.",
    "",
    "A right to the DynamoDB table applies only to partition keys of some patterns. The column *on* contains the names of these patterns, for",
    "example `table: prospects`. A pattern allows the rows of all companies. The functions themselves separate the companies: they put the id of",
    "the company into each partition key, and take this id from the verified token. No role may scan the table.",
    "",
    "## Rows of the table",
    "",
    row(["pattern", "rows"]),
    "|---|---|",
    ...Object.entries(familyReasons).map((cells) => row(cells)),
    "",
    "## Functions",
    "",
    row(["function", "on", "actions", "why"]),
    "|---|---|---|---|",
    ...functions.flatMap(({ id, file, statements }) => {
      const rights = merged(statements.flatMap((statement) => rightsOf(id, statement))).filter(
        (right) => !isOwnLog(right),
      );
      return rightRows(file, rights.length > 0 ? rights : [{ on: "", actions: [], reason: "needs no rights" }]);
    }),
    "",
    "## Other roles",
    "",
    row(["role", "used by", "on", "actions", "why"]),
    "|---|---|---|---|---|",
    ...others.flatMap(({ id, service, statements, managed }) => [
      ...managed.map((policy) =>
        row([`\`${id}\``, service, "AWS's managed policy", `\`${policy}\``, "the service requires it"]),
      ),
      ...statements
        .flatMap((statement) => rightsOf(id, statement))
        .map(({ on, actions, reason }) =>
          row([`\`${id}\``, service, on, actions.map((action) => `\`${action}\``).join(", "), reason ?? ""]),
        ),
    ]),
    "",
    peopleSection(),
  ].join("\n")}\n`;
}

/**
 * Returns the settings of the deployment that the document describes. It has the preset `production`, so the document contains the roles
 * for backups and for step-by-step deployments. It has no console, so the document does not contain the roles that only the console needs.
 */
export const documentedDeployment = (): DeployConfig =>
  readConfig({ preset: "production", alarmEmail: "operator@example.com" });

const usage = `npm run permissions -- [options]
    --check   writes nothing, and fails if the committed document is out of date
exit code 0: success, 1: the check has failed, 2: wrong usage`;

/** Returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const options = optionsOf(args, { check: { type: "boolean" } }, usage);
  const directory = mkdtempSync(join(tmpdir(), "canvassing-permissions-"));
  const emptyBundles = async (files: readonly string[], outDir: string): Promise<void> => {
    for (const file of files) mkdirSync(join(outDir, file), { recursive: true });
  };
  const { data, service } = await synthesize(documentedDeployment(), directory, emptyBundles);
  rmSync(directory, { recursive: true });
  const text = permissionsDocument({ ...data.Resources, ...service.Resources });
  const files = [
    [DOCUMENT, text],
    ...persons.map((person) => [policyFile(person), policyText(person)] as const),
  ] as const;
  let code: number = exitCodes.done;
  for (const [name, generated] of files) {
    const file = join(root, name);
    if (options.check !== true) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, generated);
    } else if (!existsSync(file) || readFileSync(file, "utf8") !== generated) {
      console.error(`${name} is out of date; run \`npm run permissions\``);
      code = exitCodes.failed;
    }
  }
  return code;
}

if (import.meta.main) await runCommand(() => main(process.argv.slice(2)));
