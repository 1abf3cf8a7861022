/**
 * Reads CloudFormation templates, determines the order in which CloudFormation creates the resources, and resolves intrinsic functions such
 * as `Ref`. It checks only a few rules of CloudFormation, because the CDK checks templates at each `cdk synth`.
 */
import * as z from "zod/mini";
import { withoutNesting } from "../../../infra/nested-stacks.ts";
import { at, type Fields, isFields, listed } from "../../infra/template.ts";
import { ACCOUNT, REGION } from "./account.ts";

const Policy = z.optional(z.enum(["Delete", "Retain", "RetainExceptOnCreate", "Snapshot"]));
/** A strict object, because CloudFormation refuses unknown attributes of a resource. */
const Resource = z.strictObject({
  Type: z.string(),
  Properties: z._default(z.record(z.string(), z.unknown()), {}),
  DependsOn: z._default(z.union([z.string(), z.array(z.string())]), []),
  Metadata: z.optional(z.unknown()),
  DeletionPolicy: Policy,
  UpdateReplacePolicy: Policy,
  UpdatePolicy: z.optional(
    z.strictObject({
      CodeDeployLambdaAliasUpdate: z.strictObject({ ApplicationName: z.unknown(), DeploymentGroupName: z.unknown() }),
    }),
  ),
});
export type Resource = z.infer<typeof Resource>;

const Output = z.strictObject({
  Value: z.unknown(),
  Description: z.optional(z.string()),
  Export: z.optional(z.strictObject({ Name: z.unknown() })),
});

const Template = z.strictObject({
  AWSTemplateFormatVersion: z.optional(z.string()),
  Description: z.optional(z.string().check(z.maxLength(1_024))),
  Metadata: z.optional(z.unknown()),
  Parameters: z._default(
    z.record(z.string(), z.looseObject({ Type: z.string(), Default: z.optional(z.unknown()) })),
    {},
  ),
  // The CDK adds a rule that requires a version of `cdk bootstrap`. The simulation does not evaluate it.
  Rules: z.optional(z.unknown()),
  Resources: z.record(z.string().check(z.regex(/^[A-Za-z0-9]{1,255}$/)), Resource),
  Outputs: z._default(z.record(z.string().check(z.regex(/^[A-Za-z0-9]{1,255}$/)), Output), {}),
});
export type Template = z.infer<typeof Template>;

/** An error that CloudFormation sends to its client. `code` is the error code of the AWS API. */
export class ValidationError extends Error {
  readonly code: string;

  constructor(message: string, code = "ValidationError") {
    super(message);
    this.code = code;
  }
}

/** Returns the text of the nested template at a URL. */
export type ReadNested = (url: string) => string;

/**
 * Parses a template, and replaces its nested stacks by their resources. AWS would deploy each nested stack as a stack of its own, but it
 * would create the resources in the same order.
 */
export function readTemplate(text: string, readNested?: ReadNested): Template {
  const parent = partOf(text);
  const whole = withoutNesting(parent, ({ Properties }) => {
    if (readNested === undefined) throw new ValidationError("this template cannot have nested stacks");
    const url = evaluate(at(Properties, "TemplateURL"), nowhere);
    return partOf(readNested(String(url)));
  });
  return Template.parse(whole);
}

/** A scope in which only the pseudo parameters have values. */
const nowhere: Scope = {
  parameters: { "AWS::AccountId": ACCOUNT, "AWS::Region": REGION, "AWS::URLSuffix": "amazonaws.com" },
  resource: (id) => {
    throw new ValidationError(`TemplateURL refers to ${id}`);
  },
  importValue: (name) => {
    throw new ValidationError(`TemplateURL imports ${name}`);
  },
};

function partOf(text: string): Template {
  const template = z.safeParse(Template, JSON.parse(text));
  if (template.success) return template.data;
  throw new ValidationError(`Template format error: ${z.prettifyError(template.error)}`);
}

interface Reference {
  readonly to: string;
  readonly attribute?: string;
}

/** Returns every reference within a value: `Ref` and `Fn::GetAtt`, and both of them inside `Fn::Sub`. */
function references(value: unknown): Reference[] {
  if (Array.isArray(value)) return value.flatMap(references);
  if (!isFields(value)) return [];
  const [[name, argument] = ["", undefined], ...more] = Object.entries(value);
  if (more.length === 0) {
    if (name === "Ref") return [{ to: String(argument) }];
    if (name === "Fn::GetAtt") return [getAtt(argument)];
    if (name === "Fn::Sub") return subReferences(argument);
  }
  return Object.values(value).flatMap(references);
}

function getAtt(argument: unknown): { to: string; attribute: string } {
  const [to = "", ...attribute] = typeof argument === "string" ? argument.split(".") : listed(argument).map(String);
  return { to, attribute: attribute.join(".") };
}

function subReferences(argument: unknown): Reference[] {
  const [text, own] = Array.isArray(argument) ? argument : [argument, {}];
  const names = [...String(text).matchAll(/\$\{([^!}][^}]*)\}/g)].map(([, name = ""]) => name);
  const free = names.filter((name) => !isFields(own) || !(name in own));
  return [...free.map((name) => (name.includes(".") ? getAtt(name) : { to: name })), ...references(own)];
}

/** Returns the ids of the resources that CloudFormation must create before the resource `id`, because `id` depends on them. */
export function neededBy(Resources: Template["Resources"], id: string): Set<string> {
  const { Properties, DependsOn, UpdatePolicy } = Resources[id] ?? { Properties: {}, DependsOn: [] };
  const needed = [...references([Properties, UpdatePolicy]).map(({ to }) => to), ...listed(DependsOn).map(String)];
  return new Set(needed.filter((other) => other in Resources && other !== id));
}

/**
 * Returns the logical ids in an order in which CloudFormation can create the resources. Throws if resources depend on each other in a
 * circle.
 */
export function inOrder({ Resources }: Pick<Template, "Resources">): string[] {
  const order: string[] = [];
  const open = new Set<string>();
  function visit(id: string): void {
    if (order.includes(id)) return;
    if (open.has(id)) {
      throw new ValidationError(`Circular dependency between resources: [${[...open].join(", ")}]`);
    }
    open.add(id);
    for (const other of neededBy(Resources, id)) visit(other);
    open.delete(id);
    order.push(id);
  }
  for (const id of Object.keys(Resources)) visit(id);
  return order;
}

export interface Scope {
  /** The values of parameters and pseudo parameters. */
  readonly parameters: Fields;
  /** Returns the value of `Ref` for a resource. With `attribute`, it returns the value of `Fn::GetAtt` instead. */
  readonly resource: (logicalId: string, attribute?: string) => unknown;
  readonly importValue: (name: string) => string;
}

/** Resolves all intrinsic functions within a value. */
export function evaluate(value: unknown, scope: Scope): unknown {
  if (Array.isArray(value)) return value.map((part) => evaluate(part, scope));
  if (!isFields(value)) return value;
  const [[name, argument] = ["", undefined], ...more] = Object.entries(value);
  if (more.length === 0 && (name === "Ref" || name.startsWith("Fn::"))) return call(name, argument, scope);
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, evaluate(part, scope)]));
}

function call(name: string, argument: unknown, scope: Scope): unknown {
  if (name === "Ref") return refer({ to: String(argument) }, scope);
  if (name === "Fn::GetAtt") return refer(getAtt(argument), scope);
  if (name === "Fn::Sub") return substitute(argument, scope);
  const value = evaluate(argument, scope);
  const [first, second] = listed(value);
  switch (name) {
    case "Fn::Join":
      return listed(second).map(String).join(String(first));
    case "Fn::Select":
      return listed(second)[Number(first)];
    case "Fn::Split":
      return String(second).split(String(first));
    case "Fn::ImportValue":
      return scope.importValue(String(value));
    default:
      throw new ValidationError(`Template error: ${name} is not supported by this endpoint`);
  }
}

function refer({ to, attribute }: Reference, scope: Scope): unknown {
  return to in scope.parameters ? scope.parameters[to] : scope.resource(to, attribute);
}

function substitute(argument: unknown, scope: Scope): string {
  const [text, own] = Array.isArray(argument) ? argument : [argument, {}];
  return String(text).replace(/\$\{(!?)([^}]+)\}/g, (_, literal: string, name: string) => {
    if (literal !== "") return `\${${name}}`;
    if (isFields(own) && name in own) return String(evaluate(own[name], scope));
    return String(refer(name.includes(".") ? getAtt(name) : { to: name }, scope));
  });
}
