/** Checks `aws` commands by the models of the AWS SDK, from which AWS generates the CLI too. npm has no package of the CLI. */
import * as backup from "@aws-sdk/client-backup";
import * as cloudFormation from "@aws-sdk/client-cloudformation";
import * as cognito from "@aws-sdk/client-cognito-identity-provider";
import * as lambda from "@aws-sdk/client-lambda";
import * as ssm from "@aws-sdk/client-ssm";
import * as z from "zod/mini";

/** The SDK package of each service, by the name of the service in the CLI. */
const services: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  backup,
  cloudformation: cloudFormation,
  "cognito-idp": cognito,
  lambda,
  ssm,
};

/** The input fields of an operation whose SDK package the project does not have. The first `required` fields are required. */
interface Described {
  readonly members: readonly string[];
  readonly required: number;
}

/** Operations of CloudWatch, EventBridge and Service Quotas that the documents use, copied from AWS's API references. */
const described: Readonly<Record<string, Readonly<Record<string, Described>>>> = {
  cloudwatch: {
    DescribeAlarms: {
      members: [
        ...["AlarmNames", "AlarmNamePrefix", "AlarmTypes", "ChildrenOfAlarmName", "ParentsOfAlarmName"],
        ...["StateValue", "ActionPrefix", "MaxRecords", "NextToken"],
      ],
      required: 0,
    },
  },
  events: {
    ListRules: { members: ["NamePrefix", "EventBusName", "Limit", "NextToken"], required: 0 },
    EnableRule: { members: ["Name", "EventBusName"], required: 1 },
  },
  "service-quotas": {
    GetServiceQuota: { members: ["ServiceCode", "QuotaCode", "ContextId"], required: 2 },
    RequestServiceQuotaIncrease: { members: ["ServiceCode", "QuotaCode", "DesiredValue", "ContextId"], required: 3 },
  },
};

/** The prefix of the IAM actions of a service, if it differs from the name of the service in the CLI. */
const iamPrefixes: Readonly<Record<string, string>> = { "service-quotas": "servicequotas" };

/** How the SDK represents its schemas: a simple type is a number, and any other type is an array that begins with the kind of the type. */
const STRING = 0;
const BOOLEAN = 2;
const TIMESTAMP = 4;
const MAP_OF = 128;
const [SIMPLE_KIND, MAP_KIND] = [0, 2];
const Operation = z.tuple([z.literal(9), z.string(), z.string(), z.unknown(), z.unknown(), z.unknown()]);
const Struct = z.tuple(
  [z.literal(3), z.string(), z.string(), z.unknown(), z.array(z.string()), z.array(z.unknown())],
  z.int(),
);

/** Returns a schema without the functions, traits and names in which the SDK wraps it. */
function bare(schema: unknown): unknown {
  if (typeof schema === "function") return bare(schema());
  if (!Array.isArray(schema)) return schema;
  const [kind, ...rest] = schema;
  if (kind === SIMPLE_KIND && typeof rest[0] === "string") return bare(rest[3]);
  // A field with traits is a pair of its schema and its traits. Only the schema is needed.
  return typeof kind === "function" || Array.isArray(kind) || rest.length === 1 ? bare(kind) : schema;
}

const isMap = (schema: unknown): boolean =>
  schema === MAP_OF + STRING || schema === MAP_OF + BOOLEAN || (Array.isArray(schema) && schema[0] === MAP_KIND);

/** Returns the name of an input field in the CLI, for example `user-pool-id` for `UserPoolId`. */
const optionOf = (member: string): string =>
  member
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replaceAll(/([A-Z])([A-Z][a-z])/g, "$1-$2")
    .toLowerCase();

const pascal = (words: string): string => words.replaceAll(/(?:^|-)(\w)/g, (_, first: string) => first.toUpperCase());

/** Returns the service and the IAM action of an `aws` command. Throws if AWS has no such command, or if its arguments are wrong. */
export function awsCall([aws, service = "", command = "", ...args]: readonly string[]) {
  if (aws !== "aws" || !(service in services || service in described)) {
    throw new Error(`the tests know no service ${service} of the AWS CLI`);
  }
  const operation = pascal(command);
  const { members, schemas, required } = inputOf(service, operation);
  if (members === undefined || command !== optionOf(operation)) throw new Error(`${service} has no command ${command}`);
  const types = new Map(members.map((member, i) => [optionOf(member), { member, type: bare(schemas[i]) }]));
  const given = new Set<string>();
  for (let at = 0; at < args.length; at++) {
    const [, isOff, name = ""] = /^--(no-)?(.+)$/.exec(args[at] ?? "") ?? [];
    const { member, type } = types.get(name) ?? { member: "", type: undefined };
    if (member === "" || given.has(member) || (isOff !== undefined && type !== BOOLEAN)) {
      throw new Error(`${service} ${command} does not accept ${args[at]}`);
    }
    given.add(member);
    if (type !== BOOLEAN) checkValue(type, args[++at], name);
  }
  const missing = members.slice(0, required).filter((member) => !given.has(member));
  if (missing.length > 0) throw new Error(`${service} ${command} needs --${missing.map(optionOf).join(" --")}`);
  return { service, action: `${iamPrefixes[service] ?? service}:${operation}` };
}

interface Input {
  readonly members?: readonly string[];
  readonly schemas: readonly unknown[];
  readonly required: number;
}

/** Returns the fields of an operation's input. If the service has no such operation, the result has no `members`. */
function inputOf(service: string, operation: string): Input {
  const own = described[service]?.[operation];
  if (own !== undefined) return { ...own, schemas: own.members.map(() => STRING) };
  const found = z.safeParse(Operation, services[service]?.[`${operation}$`]);
  if (!found.success) return { schemas: [], required: 0 };
  const [, , , , members, schemas, required = 0] = z.parse(Struct, bare(found.data[4]));
  return { members, schemas, required };
}

/** Throws unless the value has its option's type: string, time, map (`NAME=text,NAME=text`) or structure with an empty map (`NAME={}`). */
function checkValue(type: unknown, text: string | undefined, option: string): void {
  if (text === undefined || text.startsWith("--")) throw new Error(`--${option} needs a value`);
  if (type === STRING || (type === TIMESTAMP && !Number.isNaN(Date.parse(text)))) return;
  const [, emptied] = /^(\w+)=\{\}$/.exec(text) ?? [];
  const structure = z.safeParse(Struct, type);
  if (structure.success && emptied !== undefined && structure.data[4].includes(emptied)) return;
  if (!isMap(type)) throw new Error(`the tests cannot read the value of --${option}`);
  if (text.split(",").some((pair) => pair.split("=").length !== 2)) {
    throw new Error(`--${option} must be a list such as NAME=text,NAME=text`);
  }
}
