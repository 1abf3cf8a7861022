/** Determines the order in which CloudFormation creates the resources of a template, and resolves intrinsic functions such as `Ref`. */
import type { CloudFormationTemplate } from "../../../infra/synth.ts";
import { type Fields, isFields, listed } from "../../infra/template.ts";

type Resources = CloudFormationTemplate["Resources"];

interface Reference {
  readonly to: string;
  readonly attribute?: string;
}

/** Returns every reference within a value: `Ref` and `Fn::GetAtt`, and both of them inside `Fn::Sub`. */
export function references(value: unknown): Reference[] {
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

/** Returns the ids of the resources that CloudFormation must create before the resource `id`. */
export function neededBy(resources: Resources, id: string): Set<string> {
  const resource = resources[id];
  const named = references([resource?.Properties, resource?.UpdatePolicy]).map(({ to }) => to);
  const needed = [...named, ...listed(resource?.DependsOn).map(String)];
  return new Set(needed.filter((other) => other in resources && other !== id));
}

/** Returns the ids of all resources that CloudFormation must create before the resource `id`, directly or indirectly. */
export function allNeededBy(resources: Resources, id: string): Set<string> {
  const needed = neededBy(resources, id);
  for (const other of needed) for (const next of neededBy(resources, other)) needed.add(next);
  return needed;
}

/** Returns the logical ids in the order of creation. Throws if resources depend on each other in a circle. */
export function inOrder(resources: Resources): string[] {
  const order = new Set<string>();
  const open = new Set<string>();
  function visit(id: string): void {
    if (order.has(id)) return;
    if (open.has(id)) throw new Error(`Circular dependency between resources: [${[...open].join(", ")}]`);
    open.add(id);
    for (const other of neededBy(resources, id)) visit(other);
    open.delete(id);
    order.add(id);
  }
  for (const id of Object.keys(resources)) visit(id);
  return [...order];
}

export interface Scope {
  /** The values of the pseudo parameters, for example `AWS::Region`. */
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
      throw new Error(`the simulation does not know the function ${name}`);
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
