/**
 * Resolves CloudFormation's intrinsic functions (`Ref`, `Fn::GetAtt` and others) to the names and ARNs of local resources. Throws a
 * LocalError for the intrinsic functions that no template of this project uses.
 */
import * as z from "zod/mini";
import { ACCOUNT, REGION } from "../servers/address.ts";
import { LocalError } from "../servers/error.ts";
import { attribute, functionArn, nameOfArn, reference, VERSION } from "./names.ts";
import type { Template, TemplateResource } from "./resources.ts";

export interface Scope {
  readonly template: Template;
  readonly sqsEndpoint: string;
  readonly exported: ReadonlyMap<string, unknown>;
}

type Intrinsic = (argument: unknown, at: string, scope: Scope) => unknown;

const Texts = z.array(z.union([z.string(), z.number()]));
const Two = z.tuple([z.unknown(), z.unknown()]);

const pseudo: Record<string, string | undefined> = {
  "AWS::Region": REGION,
  "AWS::AccountId": ACCOUNT,
  "AWS::Partition": "aws",
  "AWS::URLSuffix": "amazonaws.com",
  "AWS::StackId": `arn:aws:cloudformation:${REGION}:${ACCOUNT}:stack/local/local`,
};

const intrinsics: Record<string, Intrinsic> = {
  Ref: (name, at, scope) => ref(text(name, at), at, scope),
  "Fn::GetAtt": (argument, at, { template }) => {
    const [id, name] = parse(Two, argument, at).map((part) => text(part, at));
    const resource = template.Resources[String(id)];
    const value = resource && attribute(String(id), resource, String(name));
    if (value === undefined) throw new LocalError(`${at}: Fn::GetAtt ${id}.${name} has no value on this machine`);
    return value;
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
    const chosen = list(resolve(from, at, scope), at)[Number(index)];
    if (chosen === undefined) throw new LocalError(`${at}: Fn::Select names a missing element`);
    return chosen;
  },
  "Fn::Sub": (argument, at, scope) =>
    text(argument, at).replace(/\$\{([^}]*)\}/g, (_, name: string) => text(ref(name, at, scope), at)),
  "Fn::ImportValue": (argument, at, { exported }) => {
    const name = text(argument, at);
    if (exported.has(name)) return exported.get(name);
    throw new LocalError(`${at}: Fn::ImportValue ${name} is not an export of an earlier template`);
  },
};

/** Resolves all intrinsic functions in a value. `at` is the value's position in the template, for error messages. */
export function resolve(value: unknown, at: string, scope: Scope): unknown {
  if (Array.isArray(value)) return value.map((part, i) => resolve(part, `${at}[${i}]`, scope));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [name, argument] = entries.length === 1 ? (entries[0] ?? []) : [];
  const intrinsic = name === undefined ? undefined : intrinsics[name];
  if (intrinsic !== undefined) return intrinsic(argument, at, scope);
  if (name?.startsWith("Fn::")) throw new LocalError(`${at}: ${name} is not supported by the local runtime`);
  return Object.fromEntries(entries.map(([key, part]) => [key, resolve(part, `${at}.${key}`, scope)]));
}

function ref(name: string, at: string, scope: Scope): unknown {
  const { template, sqsEndpoint } = scope;
  const value = pseudo[name];
  if (value !== undefined) return value;
  const resource = template.Resources[name];
  if (resource === undefined) throw new LocalError(`${at}: Ref ${name} has no value on this machine`);
  const qualifier = qualifierOf(resource);
  if (qualifier === undefined) return reference(name, resource, sqsEndpoint);
  const behind = text(resolve(resource.Properties.FunctionName, name, scope), name);
  return `${functionArn(nameOfArn(behind))}:${qualifier}`;
}

/** Returns the last part of the ARN of an alias or a version, and undefined for other resources. */
function qualifierOf({ Type, Properties }: TemplateResource): string | undefined {
  if (Type === "AWS::Lambda::Version") return VERSION;
  return Type === "AWS::Lambda::Alias" ? String(Properties.Name) : undefined;
}

function parse<S extends z.ZodMiniType>(schema: S, value: unknown, at: string): z.infer<S> {
  const parsed = z.safeParse(schema, value);
  if (!parsed.success) throw new LocalError(`${at}: an intrinsic function has arguments of the wrong shape`);
  return parsed.data;
}

const text = (value: unknown, at: string): string => String(parse(z.union([z.string(), z.number()]), value, at));
const list = (value: unknown, at: string): string[] => parse(Texts, value, at).map(String);
