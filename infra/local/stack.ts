/**
 * Reads the synthesized CloudFormation templates and returns the resources that the local service runs. Throws if a template contains
 * anything that the local service does not support.
 */
import path from "node:path";
import * as z from "zod/mini";
import { messageOf } from "../command/error.ts";
import { ANY, type Api, methodSetting, planMethod, RestApi, readDefinition, Stage } from "./api-definition.ts";
import { faults, LocalError } from "./error.ts";
import { holds, resolve, type Scope } from "./intrinsics.ts";
import { nameOfArn, physicalName } from "./names.ts";
import {
  Alias,
  ApiKey,
  Bucket,
  EncryptionKey,
  EventInvokeConfig,
  EventSourceMapping,
  GlobalTable,
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

export interface Stack {
  readonly tables: readonly (Named<typeof Table> | Named<typeof GlobalTable>)[];
  readonly queues: readonly Named<typeof Queue>[];
  readonly buckets: readonly Named<typeof Bucket>[];
  readonly keys: readonly Named<typeof EncryptionKey>[];
  readonly functions: readonly FunctionSpec[];
  readonly eventSources: readonly Named<typeof EventSourceMapping>[];
  readonly invokeConfigs: readonly Named<typeof EventInvokeConfig>[];
  readonly rules: readonly Named<typeof Rule>[];
  readonly api: Api;
  readonly stages: readonly Named<typeof Stage>[];
  readonly usagePlans: readonly UsagePlanOfKeys[];
  readonly outputs: Readonly<Record<string, string>>;
}

export type UsagePlanOfKeys = z.infer<typeof UsagePlan> & { readonly keys: readonly string[] };

const schemas: Record<string, z.ZodMiniType> = {
  "AWS::DynamoDB::Table": Table,
  "AWS::DynamoDB::GlobalTable": GlobalTable,
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
  const read: Read[] = [];
  const exported = new Map<string, unknown>();
  for (const source of sources) {
    const scope = { template: parseTemplate(source), sqsEndpoint, exported: new Map(exported) };
    const present = Object.entries(scope.template.Resources).filter(
      ([, resource]) => resource.Condition === undefined || holds(resource.Condition, scope),
    );
    refuseUnsupported(present, scope);
    addExports(exported, scope);
    read.push({ scope, present });
  }
  refuseDuplicateIds(read);
  const of = <S extends z.ZodMiniType>(type: string, schema: S) =>
    read.flatMap(({ scope, present }) => parseAll(present, type, schema, scope));
  const last = read.at(-1)?.scope;
  const api = readApi(of("AWS::ApiGateway::RestApi", RestApi));
  const stages = of("AWS::ApiGateway::Stage", Stage);
  for (const stage of stages) refuseUnknownMethods(stage, api);
  const usagePlans = of("AWS::ApiGateway::UsagePlan", UsagePlan).map((plan) => ({
    ...plan,
    keys: keysOf(plan.name, of("AWS::ApiGateway::UsagePlanKey", UsagePlanKey), of("AWS::ApiGateway::ApiKey", ApiKey)),
  }));
  for (const plan of usagePlans) refuseUnknownPlanMethods(plan, api);
  const eventSources = of("AWS::Lambda::EventSourceMapping", EventSourceMapping);
  const rules = of("AWS::Events::Rule", Rule);
  refuseUnknownQualifiers(of("AWS::Lambda::Alias", Alias), { eventSources, rules, api });
  return {
    tables: [...of("AWS::DynamoDB::Table", Table), ...of("AWS::DynamoDB::GlobalTable", GlobalTable)],
    queues: of("AWS::SQS::Queue", Queue),
    buckets: of("AWS::S3::Bucket", Bucket),
    keys: of("AWS::KMS::Key", EncryptionKey),
    functions: of("AWS::Lambda::Function", LambdaFunction).map((spec) => ({
      ...spec,
      directory: path.resolve(assets, metadata(spec.id, "aws:asset:path", read)),
      file: metadata(spec.id, "file", read),
    })),
    eventSources,
    invokeConfigs: of("AWS::Lambda::EventInvokeConfig", EventInvokeConfig),
    rules,
    api,
    stages,
    usagePlans,
    outputs: last === undefined ? {} : readOutputs(last),
  };
}

type Resources = readonly (readonly [string, TemplateResource])[];

/** A template with the resources that exist: `present` contains the resources without a condition and those whose condition is true. */
interface Read {
  readonly scope: Scope;
  readonly present: Resources;
}

function parseTemplate(source: unknown): Template {
  const parsed = z.safeParse(Template, source);
  if (parsed.success) return parsed.data;
  throw new LocalError(`the template cannot be hosted locally:\n${faults("template", parsed.error)}`);
}

function addExports(exported: Map<string, unknown>, scope: Scope): void {
  for (const [id, { Export, Value }] of Object.entries(scope.template.Outputs)) {
    if (Export === undefined) continue;
    const name = z.parse(z.string(), resolve(Export.Name, `Outputs.${id}.Export`, scope));
    if (exported.has(name)) throw new LocalError(`Outputs.${id}.Export: ${name} is exported twice`);
    exported.set(name, resolve(Value, `Outputs.${id}`, scope));
  }
}

/**
 * Throws if two resources of the templates have the same logical id. AWS allows this in different templates. The local service does not,
 * because it uses logical ids as names.
 */
function refuseDuplicateIds(read: readonly Read[]): void {
  const seen = new Set<string>();
  const hosted = read.flatMap(({ present }) => present).filter(([, { Type }]) => !ignoredTypes.has(Type));
  for (const [id] of hosted) {
    if (seen.has(id)) throw new LocalError(`${id}: two templates have a resource of this logical id`);
    seen.add(id);
  }
}

function readApi(restApis: readonly Named<typeof RestApi>[]): Api {
  const [api, ...others] = restApis;
  if (api === undefined || others.length > 0) throw new LocalError("the templates must have exactly one REST API");
  return readDefinition(api.id, api.Body);
}

/** Throws if a stage has settings for a method that the API does not have. These settings would have no effect, so they are a mistake. */
function refuseUnknownMethods({ id, MethodSettings }: Named<typeof Stage>, { methods }: Api): void {
  const verbsOf = (verb: string): readonly string[] => (verb === "ANY" ? ANY : [verb]);
  const known = new Set([
    "* /*",
    ...methods.flatMap(({ path: of, verb }) => verbsOf(verb).map((one) => methodSetting(of, one))),
  ]);
  const [unknown] = MethodSettings.map(({ HttpMethod, ResourcePath }) => `${HttpMethod} ${ResourcePath}`).filter(
    (setting) => !known.has(setting),
  );
  if (unknown !== undefined) throw new LocalError(`${id}.MethodSettings: ${unknown} is not a method of the definition`);
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

function refuseUnknownPlanMethods({ id, ApiStages }: UsagePlanOfKeys & { id: string }, { methods }: Api): void {
  const known = new Set(methods.map(({ path: of, verb }) => planMethod(of, verb)));
  const [unknown] = ApiStages.flatMap(({ Throttle }) => Object.keys(Throttle)).filter((name) => !known.has(name));
  if (unknown !== undefined) throw new LocalError(`${id}.ApiStages: ${unknown} is not a method of the definition`);
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

function refuseUnsupported(resources: Resources, scope: Scope): void {
  const problems = resources.flatMap(([id, resource]) => {
    if (ignoredTypes.has(resource.Type)) return [];
    const schema = schemas[resource.Type];
    if (schema === undefined) return [`${id}: resources of type ${resource.Type} are not supported`];
    try {
      const parsed = z.safeParse(schema, resolve(resource.Properties, id, scope));
      return parsed.success ? [] : [faults(id, parsed.error)];
    } catch (error) {
      return [messageOf(error)];
    }
  });
  if (problems.length > 0) throw new LocalError(`the template cannot be hosted locally:\n${problems.join("\n")}`);
}

function parseAll<S extends z.ZodMiniType>(
  resources: Resources,
  type: string,
  schema: S,
  scope: Scope,
): (z.infer<S> & { id: string; name: string })[] {
  return resources
    .filter(([, resource]) => resource.Type === type)
    .map(([id, resource]) =>
      Object.assign({}, z.parse(schema, resolve(resource.Properties, id, scope)), {
        id,
        name: physicalName(id, resource),
      }),
    );
}

function metadata(id: string, key: string, read: readonly Read[]): string {
  const resource = read.flatMap(({ present }) => present).find(([candidate]) => candidate === id)?.[1];
  const value = z.safeParse(z.string(), resource?.Metadata[key]);
  if (!value.success) throw new LocalError(`${id}: Metadata has no "${key}"`);
  return value.data;
}

function readOutputs(scope: Scope): Record<string, string> {
  const present = Object.entries(scope.template.Outputs).filter(
    ([, output]) => output.Condition === undefined || holds(output.Condition, scope),
  );
  return Object.fromEntries(
    present.map(([name, output]) => [name, z.parse(z.string(), resolve(output.Value, `Outputs.${name}`, scope))]),
  );
}
