/**
 * Tests that every function has exactly the IAM rights that the route table declares for it. Also tests the check of unused grants: it
 * reports a grant unless a reason excuses it, and every reason excuses an existing grant.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DUE_INDEX, families } from "#shared/db/keys.ts";
import { root } from "../../../infra/build/bundle.ts";
import { type Access, usesSecretsKey } from "../../../infra/routes/route.ts";
import { authorizer, eventFunctions, methodNotAllowed, routes } from "../../../infra/routes/routes.ts";
import { assertGrantsAreUsed, excused, namedTests, staleReasons, unusedGrants } from "../../harness/grants.ts";
import { at, isFields, listed, synthesized, target } from "../template.ts";

const template = await synthesized();

const parsed = (statement: unknown) => ({
  actions: listed(at(statement, "Action")).map(String),
  resources: listed(at(statement, "Resource")),
  condition: at(statement, "Condition"),
});
const statementsOf = (file: string) => template.statementsOf(file).map(parsed);
const roleOf = (file: string) => template.resources[target(template.functionOf(file).properties.Role) ?? ""];
const allStatements = template.all("AWS::IAM::Role").flatMap(({ id, properties }) =>
  listed(properties.Policies)
    .flatMap((policy) => listed(at(policy, "PolicyDocument", "Statement")))
    .map((statement) => ({ id, ...parsed(statement) })),
);

const accessByFile: readonly { file: string; access: Access }[] = [
  ...routes,
  authorizer,
  methodNotAllowed,
  ...Object.values(eventFunctions),
];

/** Returns the role's rights on the table, each as `action family`. A family is a group of keys, for example those of prospects. */
function grantedOnTable(file: string): string[] {
  const names = Object.entries(families);
  return statementsOf(file)
    .filter(({ condition }) => condition !== undefined)
    .flatMap(({ actions, condition }) => {
      const patterns = listed(at(condition, "ForAllValues:StringLike", "dynamodb:LeadingKeys"));
      const touched = patterns.map((pattern) => names.find(([, known]) => known === pattern)?.[0] ?? String(pattern));
      return actions.flatMap((action) => touched.map((family) => `${action} ${family}`));
    })
    .toSorted();
}

function declaredOnTable({ table = {} }: Access): string[] {
  const declared = Object.entries(table).flatMap(([family, actions]) =>
    (actions ?? []).map((action) => `dynamodb:${action} ${family}`),
  );
  return declared.toSorted();
}

describe("rights", () => {
  it("are one role for each function, without a managed policy", () => {
    const roles = accessByFile.map(({ file }) => target(template.functionOf(file).properties.Role));
    expect(new Set(roles).size).toBe(roles.length);
    for (const { file } of accessByFile) expect(roleOf(file)?.Properties.ManagedPolicyArns, file).toBeUndefined();
    expect(template.all("AWS::IAM::Policy")).toEqual([]);
  });

  it("contain no wildcard in an action or a resource", () => {
    for (const { id, actions, resources } of allStatements) {
      for (const action of actions) expect(action, id).not.toContain("*");
      for (const resource of resources) {
        // Only a resource of S3 may end with `folder/*`, because the service chooses the names of objects at run time.
        const inFolder = actions.every((action) => action.startsWith("s3:"))
          ? JSON.stringify(resource).replace(/"\/(?:uploads|imports|exports|bulk)\/\*"/, "")
          : JSON.stringify(resource);
        expect(inFolder, id).not.toContain("*");
      }
    }
  });

  it("reach the table only by the key families that the function declares", () => {
    for (const { file, access } of accessByFile) expect(grantedOnTable(file), file).toEqual(declaredOnTable(access));
  });

  it("refuse a table request without a key, and are for the table and its due index only", () => {
    const [table] = template.all("AWS::DynamoDB::Table");
    for (const { file } of accessByFile) {
      for (const { actions, resources, condition } of statementsOf(file)) {
        const isTableData = actions.some((action) => /^dynamodb:(?!\w*(?:Stream|Shard|Records))/.test(action));
        if (!isTableData) continue;
        expect(condition, file).toMatchObject({ Null: { "dynamodb:LeadingKeys": "false" } });
        const isIndex = JSON.stringify(condition).includes(families.due);
        const [resource, ...more] = resources;
        expect(more, file).toEqual([]);
        if (isIndex) expect(JSON.stringify(resource), file).toContain(`/index/${DUE_INDEX.name}`);
        else expect(target(resource), file).toBe(table?.id);
      }
    }
  });

  it("never include a read of the whole table, and allow no PartiQL except inserts", () => {
    expect(JSON.stringify(template.resources)).not.toMatch(/dynamodb:(?:Scan|PartiQL(?!Insert"))/);
  });

  it("write to the function's own log group only", () => {
    for (const { file } of accessByFile) {
      const logs = statementsOf(file).filter(({ actions }) => actions.some((action) => action.startsWith("logs:")));
      const group = target(at(template.functionOf(file).properties, "LoggingConfig", "LogGroup"));
      expect(
        logs.flatMap(({ resources }) => resources.map((resource) => target(resource))),
        file,
      ).toEqual([group]);
    }
  });

  it("to the key of secrets belong to functions that need secrets or sessions; a tag and a condition name the one purpose", () => {
    const granted = accessByFile.flatMap(({ file }) => {
      const own = statementsOf(file).filter(({ actions }) => actions.some((action) => action.startsWith("kms:")));
      const tags = listed(roleOf(file)?.Properties.Tags)
        .filter((tag) => at(tag, "Value") === "use")
        .map((tag) => String(at(tag, "Key")));
      return own.map(({ actions, condition }) => ({ file, actions: actions.toSorted(), condition, tags }));
    });
    const only = (purpose: string) => ({
      condition: { StringEquals: { "kms:EncryptionContext:purpose": purpose } },
      tags: [purpose],
    });
    const sessions = only("console-sessions");
    const webhooks = only("webhook-secrets");
    expect(granted).toEqual([
      { file: "session/callback", actions: ["kms:Decrypt", "kms:GenerateDataKey"], ...sessions },
      { file: "session/refresh", actions: ["kms:Decrypt"], ...sessions },
      { file: "api-keys/create", actions: ["kms:Decrypt", "kms:GenerateDataKey"], ...webhooks },
      { file: "api-keys/rotate", actions: ["kms:Decrypt", "kms:GenerateDataKey"], ...webhooks },
      { file: "sync/changes", actions: ["kms:Decrypt", "kms:GenerateDataKey"], ...only("sync-cursors") },
      { file: "webhooks/create", actions: ["kms:Decrypt", "kms:GenerateDataKey"], ...webhooks },
      { file: "webhooks/rotate-secret", actions: ["kms:Decrypt"], ...webhooks },
      { file: "authorize", actions: ["kms:Decrypt"], ...sessions },
      { file: "events/deliver", actions: ["kms:Decrypt"], ...webhooks },
    ]);
  });

  it("let API Gateway call exactly the functions of the routes, the authorizer and the one for 405", () => {
    const invokers = allStatements.filter(({ actions }) => actions.includes("lambda:InvokeFunction"));
    const callable = invokers.flatMap(({ resources }) => resources.map((resource) => template.invokedBy(resource)));
    expect(callable.toSorted()).toEqual(
      [authorizer, methodNotAllowed, ...routes].map(({ file }) => template.functionOf(file).id).toSorted(),
    );
  });
});

describe("environment", () => {
  const variablesOf = (file: string): string[] => {
    const variables = template.variablesOf(file);
    return isFields(variables) ? Object.keys(variables) : [];
  };

  it("names exactly the resources that the function has a right to", () => {
    const routeFiles = new Set([...routes, methodNotAllowed].map(({ file }) => file));
    for (const { file, access } of accessByFile) {
      const expected = [
        ...(access.table === undefined ? [] : ["TABLE_NAME"]),
        ...(access.issuer === undefined && access.console === undefined ? [] : ["ISSUER"]),
        ...(access.issuer === undefined ? [] : ["AUDIENCE", "JWKS_URI"]),
        ...(file === authorizer.file ? ["THROTTLE_KEY_PREFIX"] : []),
        ...(access.identityProvider === undefined ? [] : ["USER_POOL_ID"]),
        ...(access.files === undefined ? [] : ["BUCKET_NAME"]),
        ...(access.deliveryQueue === undefined ? [] : ["DELIVERY_QUEUE_URL"]),
        ...(usesSecretsKey(access) ? ["SECRETS_KEY_ARN"] : []),
        ...(access.poisonRecords === undefined ? [] : ["POISON_RECORDS_URL"]),
        ...(access.importQueue === undefined ? [] : ["IMPORT_QUEUE_URL"]),
        ...(access.exportQueue === undefined ? [] : ["EXPORT_QUEUE_URL"]),
        ...(access.bulkQueue === undefined ? [] : ["BULK_QUEUE_URL"]),
        ...(access.settings ?? []),
        ...(routeFiles.has(file) ? ["ALLOWED_ORIGINS"] : []),
      ];
      expect(variablesOf(file).toSorted(), file).toEqual(expected.toSorted());
    }
  });

  it("names the issuer for the authorizer and the sign-in of the console only, because no other function verifies a token", () => {
    const verifiers = ["session/callback", "session/refresh", "authorize"];
    expect(accessByFile.filter(({ access }) => access.issuer !== undefined).map(({ file }) => file)).toEqual(verifiers);
    const readers = accessByFile.filter(({ access }) => access.table?.identity?.includes("GetItem") === true);
    expect(readers.map(({ file }) => file)).toEqual(verifiers);
  });

  it("uses every family of keys", () => {
    const touched = new Set(accessByFile.flatMap(({ access }) => Object.keys(access.table ?? {})));
    const known: string[] = Object.keys(families) satisfies string[];
    const untouched = known.filter((family) => !touched.has(family));
    expect(untouched).toEqual([]);
  });
});

const unused = unusedGrants({});
const usesOfAll = Object.fromEntries(
  [...Map.groupBy(unused, ({ file }) => file)].map(([file, grants]) => [file, grants.map(({ grant }) => grant)]),
);

it("every grant that no call uses is reported, unless a reason excuses the grant", () => {
  expect(unused).toContainEqual({ file: "prospects/delete", grant: "PutItem prospects" });
  expect(unused.some((one) => excused.some(({ file, grant }) => one.file === file && one.grant === grant))).toBe(false);
  expect(() => assertGrantsAreUsed(usesOfAll)).not.toThrow();
  const { "prospects/delete": some = [], ...others } = usesOfAll;
  const rest = some.filter((grant) => grant !== "PutItem prospects");
  expect(() => assertGrantsAreUsed({ ...others, "prospects/delete": rest })).toThrow(
    "prospects/delete has the grant PutItem prospects, which no API test uses",
  );
});

it("every reason excuses a grant that still exists", () => {
  expect(staleReasons()).toEqual([]);
});

it("every test that a reason names exists", () => {
  expect(namedTests().length).toBeGreaterThan(5);
  expect(namedTests().filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
