/**
 * Stands before the DynamoDB server and does what IAM does: a function may touch what the template's policy grants it, by
 * action and leading key, and nothing else. Every test of the API is thereby a test of the policies.
 */
import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, type ServerResponse, request as sendHttp } from "node:http";
import { buffer } from "node:stream/consumers";
import * as z from "zod/mini";
import { families } from "#shared/db/families.ts";
import { LocalError } from "./error.ts";
import { OneOrMany, type Statement, statementsByFunction } from "./role-statements.ts";
import type { FunctionSpec } from "./stack.ts";

/** What one statement of a role's policy allows on the table or on its index. */
interface Grant {
  readonly actions: ReadonlySet<string>;
  readonly onIndex: boolean;
  readonly patterns: readonly RegExp[];
}

/** One action of a request and all partition keys that it touches. */
interface Use {
  readonly action: string;
  readonly onIndex: boolean;
  readonly keys: readonly string[];
}

export interface RightsGuard {
  readonly endpoint: string;
  /** Refusals so far, one line each. */
  readonly refusals: readonly string[];
  /** What each function has used so far of what it is granted: `action family` by the function's file. */
  uses(): Uses;
  stop(): void;
}

export type Uses = Readonly<Record<string, readonly string[]>>;

const Condition = z.object({
  "ForAllValues:StringLike": z.optional(z.object({ "dynamodb:LeadingKeys": z.optional(OneOrMany) })),
});

/** @param endpoint the server behind; functions are known by their access key, which is their name. */
export async function guardRights(
  endpoint: string,
  templates: readonly unknown[],
  functions: readonly FunctionSpec[],
): Promise<RightsGuard> {
  const grants = new Map(
    [...statementsByFunction(templates, functions)].map(([name, statements]) => [name, statements.map(grantOf)]),
  );
  const refusals: string[] = [];
  const used = new Map<string, Set<string>>(functions.map(({ name }) => [name, new Set()]));
  const agent = new Agent({ keepAlive: true });
  const server = createServer((request, response) => {
    void guard(request, response).catch(() => response.destroy());
  });

  async function guard(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const name = /Credential=([^/]+)\//.exec(request.headers.authorization ?? "")?.[1] ?? "";
    const operation = String(request.headers["x-amz-target"]).split(".")[1] ?? "";
    const uses = usesOf(operation, JSON.parse(body.toString("utf8")));
    const refused = uses.find((use) => !(grants.get(name) ?? []).some((grant) => allows(grant, use)));
    if (refused === undefined) {
      for (const use of uses) for (const key of use.keys) used.get(name)?.add(`${use.action} ${familyOf(key)}`);
      return forward(endpoint, agent, request, body, response);
    }
    const message = `${name} is not authorized to perform dynamodb:${refused.action} on ${refused.keys.join(", ")}`;
    refusals.push(message);
    response.writeHead(400, { "Content-Type": "application/x-amz-json-1.0" });
    response.end(JSON.stringify({ __type: "com.amazon.coral.service#AccessDeniedException", message }));
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new LocalError("the rights guard has no port");
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    refusals,
    uses: () => Object.fromEntries(functions.map(({ name, file }) => [file, [...(used.get(name) ?? [])]])),
    stop: () => {
      server.close();
      server.closeAllConnections();
      agent.destroy();
    },
  };
}

const patternOf = (pattern: string): RegExp =>
  new RegExp(`^${pattern.replaceAll(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`);

const patternsOfFamilies = Object.entries(families).map(([family, pattern]) => [family, patternOf(pattern)] as const);

/** Empty where no family has the key. */
const familyOf = (key: string): string => patternsOfFamilies.find(([, pattern]) => pattern.test(key))?.[0] ?? "";

function grantOf(statement: Statement): Grant {
  const { "ForAllValues:StringLike": wanted } = z.parse(Condition, statement.Condition ?? {});
  return {
    actions: new Set(statement.Action.map((action) => action.replace(/^dynamodb:/, ""))),
    onIndex: JSON.stringify(statement.Resource).includes("/index/"),
    patterns: (wanted?.["dynamodb:LeadingKeys"] ?? []).map(patternOf),
  };
}

/** A request whose keys need two statements together is refused by IAM as well. */
const allows = ({ actions, onIndex, patterns }: Grant, use: Use): boolean =>
  actions.has(use.action) &&
  onIndex === use.onIndex &&
  use.keys.every((key) => patterns.some((pattern) => pattern.test(key)));

const Text = z.object({ S: z.string() });
const Keyed = z.looseObject({ pk: Text });
const Part = z.looseObject({ Key: z.optional(Keyed), Item: z.optional(Keyed) });
const partKey = ({ Key, Item }: z.infer<typeof Part>): string => (Key ?? Item)?.pk.S ?? "";

const transactionActions = {
  Put: "PutItem",
  Update: "UpdateItem",
  Delete: "DeleteItem",
  ConditionCheck: "ConditionCheckItem",
} as const;
const Transaction = z.object({
  TransactItems: z.array(z.partialRecord(z.enum(["Put", "Update", "Delete", "ConditionCheck"]), Part)),
});
const BatchGet = z.object({ RequestItems: z.record(z.string(), z.looseObject({ Keys: z.array(Keyed) })) });
const BatchWrite = z.object({ RequestItems: z.record(z.string(), z.array(z.record(z.string(), Part))) });
/** As the one place of the service that writes statements writes them: `INSERT INTO "table" VALUE {'pk': ?, …}`. */
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
        const parts = z
          .parse(Transaction, body)
          .TransactItems.flatMap((entry) =>
            Object.entries(entry).flatMap(([name, part]) => (name === kind && part !== undefined ? [part] : [])),
          );
        return parts.length === 0 ? [] : [{ action, onIndex: false, keys: parts.map(partKey) }];
      });
    case "BatchGetItem": {
      const keys = Object.values(z.parse(BatchGet, body).RequestItems).flatMap(({ Keys }) =>
        Keys.map(({ pk }) => pk.S),
      );
      return [{ action: operation, onIndex: false, keys }];
    }
    case "BatchWriteItem": {
      const parts = Object.values(z.parse(BatchWrite, body).RequestItems).flat();
      return [{ action: operation, onIndex: false, keys: parts.flatMap((part) => Object.values(part).map(partKey)) }];
    }
    case "BatchExecuteStatement":
      return [{ action: "PartiQLInsert", onIndex: false, keys: z.parse(Statements, body).Statements.map(insertedKey) }];
    case "Query": {
      const { IndexName, KeyConditionExpression, ExpressionAttributeValues } = z.parse(Query, body);
      const placeholder = /=\s*(:\w+)/.exec(KeyConditionExpression)?.[1] ?? "";
      const key = ExpressionAttributeValues[placeholder]?.S ?? "";
      return [{ action: operation, onIndex: IndexName !== undefined, keys: [key] }];
    }
    default:
      return [{ action: operation, onIndex: false, keys: [partKey(z.parse(Part, body))] }];
  }
}

function forward(
  endpoint: string,
  agent: Agent,
  request: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const { host: _, ...headers } = request.headers;
    const sent = sendHttp(endpoint, { method: "POST", agent, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.once("end", resolve);
      answer.once("error", reject);
    });
    sent.once("error", reject);
    sent.end(body);
  });
}
