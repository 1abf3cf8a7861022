/** Resolves CloudFormation's intrinsic functions to the names of this machine. What it does not know is an error. */
import * as z from "zod/mini";
import { LocalError } from "./error.ts";
import { ACCOUNT, attribute, REGION, reference } from "./names.ts";
import type { Template } from "./template.ts";

export interface Surroundings {
  readonly template: Template;
  /** Queue URLs begin with it. */
  readonly sqsEndpoint: string;
  /** What templates that are deployed before this one export, by name. */
  readonly exported: ReadonlyMap<string, unknown>;
}

type Intrinsic = (argument: unknown, at: string, around: Surroundings) => unknown;

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
  Ref: (name, at, around) => ref(text(name, at), at, around),
  "Fn::GetAtt": (argument, at, around) => {
    const [id = "", ...path] = typeof argument === "string" ? argument.split(".") : list(argument, at);
    return getAttribute(id, path.join("."), at, around);
  },
  "Fn::Join": (argument, at, around) => {
    const [separator, parts] = parse(Two, argument, at);
    return list(resolve(parts, at, around), at).join(text(separator, at));
  },
  "Fn::Split": (argument, at, around) => {
    const [separator, whole] = parse(Two, argument, at);
    return text(resolve(whole, at, around), at).split(text(separator, at));
  },
  "Fn::Select": (argument, at, around) => {
    const [index, from] = parse(Two, argument, at);
    const chosen = list(resolve(from, at, around), at)[Number(resolve(index, at, around))];
    if (chosen === undefined) throw new LocalError(`${at}: Fn::Select names an element that is not there`);
    return chosen;
  },
  "Fn::Sub": (argument, at, around) => substitute(argument, at, around),
  "Fn::If": (argument, at, around) => {
    const [name, then, otherwise] = parse(Three, argument, at);
    return resolve(holds(name, around) ? then : otherwise, at, around);
  },
  "Fn::FindInMap": (argument, at, around) => {
    const [map = "", first = "", second = ""] = list(resolve(argument, at, around), at);
    const found = around.template.Mappings[map]?.[first]?.[second];
    if (found === undefined) throw new LocalError(`${at}: Fn::FindInMap finds nothing`);
    return found;
  },
  "Fn::ImportValue": (argument, at, around) => {
    const name = text(resolve(argument, at, around), at);
    if (around.exported.has(name)) return around.exported.get(name);
    throw new LocalError(`${at}: Fn::ImportValue ${name} is exported by no template that is deployed before`);
  },
  Condition: (name, at, around) => holds(text(name, at), around),
  "Fn::Equals": (argument, at, around) => {
    const [left, right] = parse(Two, argument, at);
    return text(resolve(left, at, around), at) === text(resolve(right, at, around), at);
  },
  "Fn::Not": (argument, at, around) =>
    parse(Several, argument, at).every((part) => resolve(part, at, around) === false),
  "Fn::And": (argument, at, around) => parse(Several, argument, at).every((part) => resolve(part, at, around) === true),
  "Fn::Or": (argument, at, around) => parse(Several, argument, at).some((part) => resolve(part, at, around) === true),
};

/** `at` names the place in the template, for errors. `AWS::NoValue` becomes undefined and its key disappears. */
export function resolve(value: unknown, at: string, around: Surroundings): unknown {
  if (Array.isArray(value)) {
    return value.map((part, i) => resolve(part, `${at}[${i}]`, around)).filter((part) => part !== undefined);
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [name, argument] = entries.length === 1 ? (entries[0] ?? []) : [];
  // `Condition` is also the name of a property of policies: only its short form with one text is the intrinsic.
  const isCall = name !== undefined && (name !== "Condition" || typeof argument === "string");
  const intrinsic = isCall ? intrinsics[name] : undefined;
  if (intrinsic !== undefined) return intrinsic(argument, at, around);
  if (name?.startsWith("Fn::")) throw new LocalError(`${at}: ${name} is not supported by the local runtime`);
  const resolved = entries.map(([key, part]) => [key, resolve(part, `${at}.${key}`, around)] as const);
  return Object.fromEntries(resolved.filter(([, part]) => part !== undefined));
}

/** Whether the named condition of the template is true. */
export function holds(name: string, around: Surroundings): boolean {
  const rule = around.template.Conditions[name];
  if (rule === undefined) throw new LocalError(`Conditions.${name}: there is no such condition`);
  return resolve(rule, `Conditions.${name}`, around) === true;
}

function substitute(argument: unknown, at: string, around: Surroundings): string {
  const [pattern, given] = typeof argument === "string" ? [argument, {}] : parse(Two, argument, at);
  const variables = parse(Arguments, given, at);
  return text(pattern, at).replace(/\$\{([^!][^}]*)\}/g, (_, name: string) => {
    if (Object.hasOwn(variables, name)) return text(resolve(variables[name], at, around), at);
    const [id = "", ...path] = name.split(".");
    return text(path.length === 0 ? ref(id, at, around) : getAttribute(id, path.join("."), at, around), at);
  });
}

function ref(name: string, at: string, { template, sqsEndpoint }: Surroundings): unknown {
  if (name === "AWS::NoValue") return undefined;
  const value = pseudo[name] ?? template.Parameters[name]?.Default;
  if (value !== undefined) return value;
  const resource = template.Resources[name];
  if (resource === undefined) throw new LocalError(`${at}: Ref ${name} names nothing that has a value on this machine`);
  return reference(name, resource, sqsEndpoint);
}

function getAttribute(id: string, name: string, at: string, { template, sqsEndpoint }: Surroundings): string {
  const resource = template.Resources[id];
  const value = resource && attribute(id, resource, name, sqsEndpoint);
  if (value === undefined) throw new LocalError(`${at}: Fn::GetAtt ${id}.${name} has no value on this machine`);
  return value;
}

function parse<S extends z.ZodMiniType>(schema: S, value: unknown, at: string): z.infer<S> {
  const parsed = z.safeParse(schema, value);
  if (!parsed.success) throw new LocalError(`${at}: an intrinsic function has arguments of another shape`);
  return parsed.data;
}

const text = (value: unknown, at: string): string => String(parse(z.union([z.string(), z.number()]), value, at));
const list = (value: unknown, at: string): string[] => parse(Texts, value, at).map(String);
