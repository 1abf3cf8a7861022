/**
 * Reads the synthesized CloudFormation templates and returns the resources that the local service runs. Throws if a template contains
 * anything that the local service does not support.
 */
import path from "node:path";
import * as z from "zod/mini";
import { messageOf } from "../../cli/command/error.ts";
import { faults, LocalError } from "../servers/error.ts";
import { ANY, type Api, methodSetting, planMethod, RestApi, readDefinition, Stage } from "./api-definition.ts";
import { resolve, type Scope } from "./intrinsics.ts";
import { nameOfArn, physicalName } from "./names.ts";
import {
  Alias,
  ApiKey,
  Bucket,
  EncryptionKey,
  EventInvokeConfig,
  EventSourceMapping,
  ignoredTypes,
  LambdaFunction,
  Queue,
  Rule,
  Table,
  Template,
  type TemplateResource,
  UsagePlan,
  UsagePlanKey,
  Version,
} from "./resources.ts";

/** A resource with its logical id, its local name and its properties. The intrinsic functions in its properties are already resolved. */
export type Named<S extends z.ZodMiniType> = z.infer<S> & { readonly id: string; readonly name: string };
export type FunctionSpec = Named<typeof LambdaFunction> & {
  readonly directory: string;
  readonly file: string;
};

export type Mapping = Named<typeof EventSourceMapping>;

export interface Stack {
  readonly tables: readonly Named<typeof Table>[];
  readonly queues: readonly Named<typeof Queue>[];
  readonly buckets: readonly Named<typeof Bucket>[];
  readonly keys: readonly Named<typeof EncryptionKey>[];
  readonly functions: readonly FunctionSpec[];
  readonly eventSources: readonly Mapping[];
  readonly invokeConfigs: readonly Named<typeof EventInvokeConfig>[];
  readonly rules: readonly Named<typeof Rule>[];
  readonly api: Api;
  readonly stages: readonly Named<typeof Stage>[];
  readonly usagePlans: readonly UsagePlanOfKeys[];
  readonly outputs: Readonly<Record<string, string>>;
}

export type UsagePlanOfKeys = Named<typeof UsagePlan> & { readonly keys: readonly string[] };

const schemas: Record<string, z.ZodMiniType> = {
  "AWS::DynamoDB::Table": Table,
  "AWS::SQS::Queue": Queue,
  "AWS::S3::Bucket": Bucket,
  "AWS::KMS::Key": EncryptionKey,
  "AWS::Lambda::Function": LambdaFunction,
  "AWS::Lambda::Version": Version,
  "AWS::Lambda::Alias": Alias,
  "AWS::Lambda::EventSourceMapping": EventSourceMapping,
  "AWS::Lambda::EventInvokeConfig": EventInvokeConfig,
  "AWS::Events::Rule": Rule,
  "AWS::ApiGateway::RestApi": RestApi,
  "AWS::ApiGateway::Stage": Stage,
  "AWS::ApiGateway::UsagePlan": UsagePlan,
  "AWS::ApiGateway::UsagePlanKey": UsagePlanKey,
  "AWS::ApiGateway::ApiKey": ApiKey,
};

/**
 * Reads the templates. Throws a LocalError that names each resource and property that is not supported.
 * @param sources the templates in the order of their deployment, because a template may import values of earlier templates
 * @param assets the directory to which asset paths are relative
 */
export function readStack(sources: readonly unknown[], sqsEndpoint: string, assets: string): Stack {
  const resources: Resolved[] = [];
  const exported = new Map<string, unknown>();
  let outputs: Stack["outputs"] = {};
  for (const source of sources) {
    const scope = { template: parseTemplate(source), sqsEndpoint, exported };
    resources.push(...resolvedIn(scope));
    const resolved = outputsIn(scope);
    outputs = Object.fromEntries(resolved.map(({ id, value }) => [id, value]));
    for (const { exportName, value } of resolved) {
      if (exportName === undefined) continue;
      if (exported.has(exportName)) throw new LocalError(`${exportName} is exported twice`);
      exported.set(exportName, value);
    }
  }
  refuseDuplicateIds(resources);
  const of = <S extends z.ZodMiniType>(type: string, schema: S): Named<S>[] =>
    resources
      .filter((resource) => resource.type === type)
      .map(({ id, name, properties }) => Object.assign({}, z.parse(schema, properties), { id, name }));
  const stack = {
    tables: of("AWS::DynamoDB::Table", Table),
    queues: of("AWS::SQS::Queue", Queue),
    buckets: of("AWS::S3::Bucket", Bucket),
    keys: of("AWS::KMS::Key", EncryptionKey),
    functions: of("AWS::Lambda::Function", LambdaFunction).map((spec) => ({
      ...spec,
      directory: path.resolve(assets, metadata(spec.id, "aws:asset:path", resources)),
      file: metadata(spec.id, "file", resources),
    })),
    eventSources: of("AWS::Lambda::EventSourceMapping", EventSourceMapping),
    invokeConfigs: of("AWS::Lambda::EventInvokeConfig", EventInvokeConfig),
    rules: of("AWS::Events::Rule", Rule),
    api: readApi(of("AWS::ApiGateway::RestApi", RestApi)),
    stages: of("AWS::ApiGateway::Stage", Stage),
    usagePlans: of("AWS::ApiGateway::UsagePlan", UsagePlan).map((plan) => ({
      ...plan,
      keys: keysOf(plan.name, of("AWS::ApiGateway::UsagePlanKey", UsagePlanKey), of("AWS::ApiGateway::ApiKey", ApiKey)),
    })),
    outputs,
  };
  refuseUnknownMethods(stack);
  const { eventSources, rules, api } = stack;
  refuseUnknownQualifiers(of("AWS::Lambda::Alias", Alias), { eventSources, rules, api });
  return stack;
}

interface Resolved {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  /** The properties without intrinsic functions. */
  readonly properties: unknown;
  readonly metadata: TemplateResource["Metadata"];
}

function parseTemplate(source: unknown): Template {
  const parsed = z.safeParse(Template, source);
  if (parsed.success) return parsed.data;
  throw new LocalError(`the template cannot be hosted locally:\n${faults("template", parsed.error)}`);
}

function outputsIn(scope: Scope): { id: string; value: string; exportName: string | undefined }[] {
  const textOf = (value: unknown, at: string): string => z.parse(z.string(), resolve(value, at, scope));
  return Object.entries(scope.template.Outputs).map(([id, { Value, Export }]) => ({
    id,
    value: textOf(Value, `Outputs.${id}`),
    exportName: Export && textOf(Export.Name, `Outputs.${id}.Export`),
  }));
}

/** Returns the resources that the local service runs. Throws a LocalError with one line for each fault. */
function resolvedIn(scope: Scope): Resolved[] {
  const problems: string[] = [];
  const resources = Object.entries(scope.template.Resources).flatMap(([id, resource]) => {
    const { Type: type, Metadata } = resource;
    if (ignoredTypes.has(type)) return [];
    try {
      const properties = resolve(resource.Properties, id, scope);
      problems.push(...faultsOf(id, type, properties));
      return [{ id, name: physicalName(id, resource), type, properties, metadata: Metadata }];
    } catch (error) {
      problems.push(messageOf(error));
      return [];
    }
  });
  if (problems.length > 0) throw new LocalError(`the template cannot be hosted locally:\n${problems.join("\n")}`);
  return resources;
}

function faultsOf(id: string, type: string, properties: unknown): string[] {
  const schema = schemas[type];
  if (schema === undefined) return [`${id}: resources of type ${type} are not supported`];
  const parsed = z.safeParse(schema, properties);
  return parsed.success ? [] : [faults(id, parsed.error)];
}

/**
 * Throws if two resources of the templates have the same logical id. AWS allows this in different templates. The local service does not,
 * because it uses logical ids as names.
 */
function refuseDuplicateIds(resources: readonly Resolved[]): void {
  const seen = new Set<string>();
  for (const { id } of resources) {
    if (seen.has(id)) throw new LocalError(`${id}: two templates have a resource of this logical id`);
    seen.add(id);
  }
}

function readApi(restApis: readonly Named<typeof RestApi>[]): Api {
  const [api, ...others] = restApis;
  if (api === undefined || others.length > 0) throw new LocalError("the templates must have exactly one REST API");
  return readDefinition(api.id, api.Body);
}

/**
 * Throws if a stage or a usage plan has settings for a method that the API does not have. These settings would have no effect, so they are
 * a mistake.
 */
function refuseUnknownMethods({ api, stages, usagePlans }: Pick<Stack, "api" | "stages" | "usagePlans">): void {
  const ofStages = api.methods.flatMap(({ path: of, verb }) =>
    (verb === "ANY" ? ANY : [verb]).map((one) => methodSetting(of, one)),
  );
  const ofPlans = api.methods.map(({ path: of, verb }) => planMethod(of, verb));
  const known = new Set(["* /*", ...ofStages, ...ofPlans]);
  const named = [
    ...stages.flatMap(({ id, MethodSettings }) =>
      MethodSettings.map(({ HttpMethod, ResourcePath }) => [`${id}.MethodSettings`, `${HttpMethod} ${ResourcePath}`]),
    ),
    ...usagePlans.flatMap(({ id, ApiStages }) =>
      ApiStages.flatMap(({ Throttle }) => Object.keys(Throttle)).map((method) => [`${id}.ApiStages`, method]),
    ),
  ];
  for (const [place, method = ""] of named) {
    if (!known.has(method)) throw new LocalError(`${place}: ${method} is not a method of the definition`);
  }
}

function keysOf(
  plan: string,
  memberships: readonly z.infer<typeof UsagePlanKey>[],
  keys: readonly Named<typeof ApiKey>[],
): string[] {
  return memberships
    .filter(({ UsagePlanId }) => UsagePlanId === plan)
    .map(({ KeyId }) => {
      const found = keys.find(({ name }) => name === KeyId);
      if (found === undefined) throw new LocalError(`the usage plan ${plan} names the unknown API key ${KeyId}`);
      return found.Value;
    });
}

/**
 * Throws if an event source, a rule or the API names an alias that does not exist. In a deployment, Lambda would refuse each invocation
 * through such an alias.
 */
function refuseUnknownQualifiers(aliases: readonly Named<typeof Alias>[], callers: object): void {
  const known = new Set(aliases.map((alias) => `${nameOfArn(alias.FunctionName)}:${alias.Name}`));
  const called = JSON.stringify(callers).matchAll(/:function:([\w-]+:[\w$-]+)/g);
  const [unknown] = [...called].map(([, name = ""]) => name).filter((name) => !known.has(name));
  if (unknown !== undefined) throw new LocalError(`${unknown}: the templates have no such alias of this function`);
}

function metadata(id: string, key: string, resources: readonly Resolved[]): string {
  const value = z.safeParse(z.string(), resources.find((resource) => resource.id === id)?.metadata[key]);
  if (!value.success) throw new LocalError(`${id}: Metadata has no "${key}"`);
  return value.data;
}

export const isQueue = ({ EventSourceArn }: Mapping): boolean => EventSourceArn.startsWith("arn:aws:sqs:");

/** Returns true if the API calls this function for a method or as an authorizer. Returns false for a function that only events start. */
export function servesRequests({ name }: FunctionSpec, { authorizers, methods }: Api): boolean {
  const addresses = [
    ...[...authorizers.values()].map(({ uri }) => uri),
    ...methods.flatMap(({ integration }) => (integration.type === "aws_proxy" ? [integration.uri] : [])),
  ];
  return addresses.some((uri) => uri.includes(`:${name}/`));
}
