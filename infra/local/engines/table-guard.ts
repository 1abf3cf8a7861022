/**
 * Enforces the functions' IAM policies from the template for calls to DynamoDB, so that every API test also tests these policies. Functions
 * that run in the process of the service ask the guard before each call. Functions in threads of their own do not ask.
 */
import * as z from "zod/mini";
import { families } from "#shared/db/keys.ts";
import { OneOrMany, type Statement } from "../../release/rights.ts";
import { patternOf } from "../template/names.ts";
import type { FunctionSpec } from "../template/stack.ts";
import type { PolicyStatements } from "./policies.ts";

/**
 * `patterns` match the partition keys that a policy statement allows. A statement without the condition `dynamodb:LeadingKeys` allows no
 * key in the local service, although IAM would allow all keys: each statement about the table must name its keys.
 */
interface Grant {
  readonly actions: ReadonlySet<string>;
  readonly onIndex: boolean;
  readonly patterns: readonly RegExp[];
}

/** One action that a DynamoDB request performs. `keys` are all partition keys that the action reads or writes. */
interface Use {
  readonly action: string;
  readonly onIndex: boolean;
  readonly keys: readonly string[];
}

/** Returns why the caller may not perform the call with this body, or undefined if its policy allows the call. */
export type Refusal = (caller: string, operation: string, body: string) => string | undefined;

/** What each function has used since the start, by its source file: actions and families of partition keys, such as `GetItem prospects`. */
export type Uses = Readonly<Record<string, readonly string[]>>;

const TableCondition = z.object({
  "ForAllValues:StringLike": z.optional(z.object({ "dynamodb:LeadingKeys": z.optional(OneOrMany) })),
});

/** Refuses a call if the policy of the calling function does not allow the action or one of the partition keys. */
export function guardRights(statements: PolicyStatements, functions: readonly FunctionSpec[]) {
  const grants = new Map([...statements].map(([name, own]) => [name, own.map(grantOf)]));
  const refusals: string[] = [];
  const used = new Map<string, Set<string>>(functions.map(({ name }) => [name, new Set()]));

  function refusal(name: string, operation: string, body: string): string | undefined {
    const uses = usesOf(operation, JSON.parse(body));
    const refused = uses.find((use) => !(grants.get(name) ?? []).some((grant) => allows(grant, use)));
    if (refused === undefined) {
      for (const use of uses) for (const key of use.keys) used.get(name)?.add(`${use.action} ${familyOf(key)}`);
      return undefined;
    }
    const message = `${name} is not authorized to perform dynamodb:${refused.action} on ${refused.keys.join(", ")}`;
    refusals.push(message);
    return message;
  }

  return {
    refusal,
    refusals,
    uses: (): Uses => Object.fromEntries(functions.map(({ name, file }) => [file, [...(used.get(name) ?? [])]])),
  };
}

const patternsOfFamilies = Object.entries(families).map(([family, pattern]) => [family, patternOf(pattern)] as const);

/** Returns the family of a partition key (a group of keys with the same rights), or an empty string. */
const familyOf = (key: string): string => patternsOfFamilies.find(([, pattern]) => pattern.test(key))?.[0] ?? "";

function grantOf(statement: Statement): Grant {
  const { "ForAllValues:StringLike": wanted } = z.parse(TableCondition, statement.Condition ?? {});
  return {
    actions: new Set(statement.Action.map((action) => action.replace(/^dynamodb:/, ""))),
    onIndex: JSON.stringify(statement.Resource).includes("/index/"),
    patterns: (wanted?.["dynamodb:LeadingKeys"] ?? []).map(patternOf),
  };
}

/** Returns true if one statement allows all keys of the use. IAM does not combine statements that each allow a part of the keys. */
const allows = ({ actions, onIndex, patterns }: Grant, use: Use): boolean =>
  actions.has(use.action) &&
  onIndex === use.onIndex &&
  use.keys.length > 0 &&
  use.keys.every((key) => patterns.some((pattern) => pattern.test(key)));

/** Returns the partition keys of all items and keys in the body of a call. */
function keysIn(body: unknown): string[] {
  if (typeof body !== "object" || body === null) return [];
  return Object.entries(body).flatMap(([name, value]) => (name === "pk" ? [z.parse(Text, value).S] : keysIn(value)));
}

const Text = z.object({ S: z.string() });
const transactionActions = {
  Put: "PutItem",
  Update: "UpdateItem",
  Delete: "DeleteItem",
  ConditionCheck: "ConditionCheckItem",
} as const;
const Transaction = z.object({ TransactItems: z.array(z.record(z.string(), z.unknown())) });
/** A batch of PartiQL statements in the form that shared/db/table.ts writes: `INSERT INTO "table" VALUE {'pk': ?, …}`. */
const Statements = z.object({
  Statements: z.array(
    z.object({
      Statement: z.string().check(z.startsWith("INSERT INTO ")),
      Parameters: z.array(z.looseObject({ S: z.optional(z.string()) })),
    }),
  ),
});
const insertedKey = ({ Statement, Parameters }: z.infer<typeof Statements>["Statements"][number]): string =>
  Parameters[[...Statement.matchAll(/'(\w+)': \?/g)].findIndex(([, name]) => name === "pk")]?.S ?? "";

const Query = z.object({
  IndexName: z.optional(z.string()),
  KeyConditionExpression: z.string(),
  ExpressionAttributeValues: z.record(z.string(), z.looseObject({ S: z.optional(z.string()) })),
});

function usesOf(operation: string, body: unknown): Use[] {
  switch (operation) {
    case "TransactWriteItems":
      return Object.entries(transactionActions).flatMap(([kind, action]) => {
        const keys = z.parse(Transaction, body).TransactItems.flatMap((entry) => keysIn(entry[kind]));
        return keys.length === 0 ? [] : [{ action, onIndex: false, keys }];
      });
    case "BatchExecuteStatement":
      return [{ action: "PartiQLInsert", onIndex: false, keys: z.parse(Statements, body).Statements.map(insertedKey) }];
    case "Query": {
      const { IndexName, KeyConditionExpression, ExpressionAttributeValues } = z.parse(Query, body);
      const placeholder = /=\s*(:\w+)/.exec(KeyConditionExpression)?.[1] ?? "";
      const key = ExpressionAttributeValues[placeholder]?.S ?? "";
      return [{ action: operation, onIndex: IndexName !== undefined, keys: [key] }];
    }
    default:
      return [{ action: operation, onIndex: false, keys: keysIn(body) }];
  }
}
