/**
 * Resolves CloudFormation's intrinsic functions (`Ref`, `Fn::GetAtt` and others) to the names and ARNs of local resources. Throws a
 * LocalError if it does not support an intrinsic function.
 */
import * as z from "zod/mini";
import { LocalError } from "./error.ts";
import { ACCOUNT, attribute, functionArn, nameOfArn, REGION, reference, VERSION } from "./names.ts";
import type { Template, TemplateResource } from "./resources.ts";

export interface Scope {
  readonly template: Template;
  readonly sqsEndpoint: string;
  readonly exported: ReadonlyMap<string, unknown>;
}

type Intrinsic = (argument: unknown, at: string, scope: Scope) => unknown;

const Arguments = z.record(z.string(), z.unknown());
const Several = z.array(z.unknown());
const Texts = z.array(z.union([z.string(), z.number()]));
const Two = z.tuple([z.unknown(), z.unknown()]);
const Three = z.tuple([z.string(), z.unknown(), z.unknown()]);

const pseudo: Record<string, string | undefined> = {
  "AWS::Region": REGION,
  "AWS::AccountId": ACCOUNT,
  "AWS::Partition": "aws",
  "AWS::URLSuffix": "amazonaws.com",
  "AWS::StackName": "local",
  "AWS::StackId": `arn:aws:cloudformation:${REGION}:${ACCOUNT}:stack/local/local`,
};

const intrinsics: Record<string, Intrinsic> = {
  Ref: (name, at, scope) => ref(text(name, at), at, scope),
  "Fn::GetAtt": (argument, at, scope) => {
    const [id = "", ...path] = typeof argument === "string" ? argument.split(".") : list(argument, at);
    return getAttribute(id, path.join("."), at, scope);
  },
  "Fn::Join": (argument, at, scope) => {
    const [separator, parts] = parse(Two, argument, at);
    return list(resolve(parts, at, scope), at).join(text(separator, at));
  },
  "Fn::Split": (argument, at, scope) => {
    const [separator, whole] = parse(Two, argument, at);
    return text(resolve(whole, at, scope), at).split(text(separator, at));
  },
  "Fn::Select": (argument, at, scope) => {
    const [index, from] = parse(Two, argument, at);
    const chosen = list(resolve(from, at, scope), at)[Number(resolve(index, at, scope))];
    if (chosen === undefined) throw new LocalError(`${at}: Fn::Select names a missing element`);
    return chosen;
  },
  "Fn::Sub": (argument, at, scope) => substitute(argument, at, scope),
  "Fn::If": (argument, at, scope) => {
    const [name, then, otherwise] = parse(Three, argument, at);
    return resolve(holds(name, scope) ? then : otherwise, at, scope);
  },
  "Fn::FindInMap": (argument, at, scope) => {
    const [map = "", first = "", second = ""] = list(resolve(argument, at, scope), at);
    const found = scope.template.Mappings[map]?.[first]?.[second];
    if (found === undefined) throw new LocalError(`${at}: Fn::FindInMap finds nothing`);
    return found;
  },
  "Fn::ImportValue": (argument, at, scope) => {
    const name = text(resolve(argument, at, scope), at);
    if (scope.exported.has(name)) return scope.exported.get(name);
    throw new LocalError(`${at}: Fn::ImportValue ${name} is not an export of an earlier template`);
  },
  Condition: (name, at, scope) => holds(text(name, at), scope),
  "Fn::Equals": (argument, at, scope) => {
    const [left, right] = parse(Two, argument, at);
    return text(resolve(left, at, scope), at) === text(resolve(right, at, scope), at);
  },
  "Fn::Not": (argument, at, scope) => parse(Several, argument, at).every((part) => resolve(part, at, scope) === false),
  "Fn::And": (argument, at, scope) => parse(Several, argument, at).every((part) => resolve(part, at, scope) === true),
  "Fn::Or": (argument, at, scope) => parse(Several, argument, at).some((part) => resolve(part, at, scope) === true),
};

/**
 * Resolves all intrinsic functions in a value. Omits properties whose value is `AWS::NoValue`.
 * @param at the position in the template, for error messages
 */
export function resolve(value: unknown, at: string, scope: Scope): unknown {
  if (Array.isArray(value)) {
    return value.map((part, i) => resolve(part, `${at}[${i}]`, scope)).filter((part) => part !== undefined);
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [name, argument] = entries.length === 1 ? (entries[0] ?? []) : [];
  // `Condition` is an intrinsic function only if its value is a string. In an IAM policy, `Condition` is a normal property whose value is
  // an object.
  const isCall = name !== undefined && (name !== "Condition" || typeof argument === "string");
  const intrinsic = isCall ? intrinsics[name] : undefined;
  if (intrinsic !== undefined) return intrinsic(argument, at, scope);
  if (name?.startsWith("Fn::")) throw new LocalError(`${at}: ${name} is not supported by the local runtime`);
  const resolved = entries.map(([key, part]) => [key, resolve(part, `${at}.${key}`, scope)] as const);
  return Object.fromEntries(resolved.filter(([, part]) => part !== undefined));
}

export function holds(name: string, scope: Scope): boolean {
  const rule = scope.template.Conditions[name];
  if (rule === undefined) throw new LocalError(`Conditions.${name}: there is no such condition`);
  return resolve(rule, `Conditions.${name}`, scope) === true;
}

function substitute(argument: unknown, at: string, scope: Scope): string {
  const [pattern, given] = typeof argument === "string" ? [argument, {}] : parse(Two, argument, at);
  const variables = parse(Arguments, given, at);
  return text(pattern, at).replace(/\$\{([^!][^}]*)\}/g, (_, name: string) => {
    if (Object.hasOwn(variables, name)) return text(resolve(variables[name], at, scope), at);
    const [id = "", ...path] = name.split(".");
    return text(path.length === 0 ? ref(id, at, scope) : getAttribute(id, path.join("."), at, scope), at);
  });
}

function ref(name: string, at: string, scope: Scope): unknown {
  const { template, sqsEndpoint } = scope;
  if (name === "AWS::NoValue") return undefined;
  const value = pseudo[name] ?? template.Parameters[name]?.Default;
  if (value !== undefined) return value;
  const resource = template.Resources[name];
  if (resource === undefined) throw new LocalError(`${at}: Ref ${name} has no value on this machine`);
  const qualifier = qualifierOf(resource);
  if (qualifier !== undefined) {
    const behind = text(resolve(resource.Properties.FunctionName, name, scope), name);
    return `${functionArn(nameOfArn(behind))}:${qualifier}`;
  }
  return reference(name, resource, sqsEndpoint);
}

/**
 * Returns the last part of the ARN of an alias or a version: the alias's name or the version's number. Returns undefined for other
 * resources.
 */
function qualifierOf({ Type, Properties }: TemplateResource): string | undefined {
  if (Type === "AWS::Lambda::Version") return VERSION;
  return Type === "AWS::Lambda::Alias" ? String(Properties.Name) : undefined;
}

function getAttribute(id: string, name: string, at: string, { template, sqsEndpoint }: Scope): string {
  const resource = template.Resources[id];
  const value = resource && attribute(id, resource, name, sqsEndpoint);
  if (value === undefined) throw new LocalError(`${at}: Fn::GetAtt ${id}.${name} has no value on this machine`);
  return value;
}

function parse<S extends z.ZodMiniType>(schema: S, value: unknown, at: string): z.infer<S> {
  const parsed = z.safeParse(schema, value);
  if (!parsed.success) throw new LocalError(`${at}: an intrinsic function has arguments of the wrong shape`);
  return parsed.data;
}

const text = (value: unknown, at: string): string => String(parse(z.union([z.string(), z.number()]), value, at));
const list = (value: unknown, at: string): string[] => parse(Texts, value, at).map(String);
