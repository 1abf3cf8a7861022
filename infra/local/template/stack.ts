/** Reads the synthesized templates. Throws if a template contains anything that the local service does not support. */
import path from "node:path";
import * as z from "zod/mini";
import { messageOf } from "../../cli/command/error.ts";
import { faults, LocalError } from "../servers/error.ts";
import { ANY, type Api, methodSetting, planMethod, readDefinition } from "./api-definition.ts";
import { resolve, type Scope } from "./intrinsics.ts";
import { physicalName } from "./names.ts";
import { ignoredTypes, schemas, Template, type TemplateResource } from "./resources.ts";

export type Stack = ReturnType<typeof readStack>;
export type FunctionSpec = Stack["functions"][number];
export type Mapping = Stack["eventSources"][number];
export type UsagePlanOfKeys = Stack["usagePlan"];

/**
 * Reads the templates. Throws a LocalError that names each resource and property that is not supported.
 * @param sources the templates in the order of their deployment, because a template may import values of earlier templates
 * @param assets the directory to which asset paths are relative
 */
export function readStack(sources: readonly unknown[], sqsEndpoint: string, assets: string) {
  const resources = new Map<string, Resolved>();
  const exported = new Map<string, unknown>();
  let outputs: Readonly<Record<string, string>> = {};
  for (const source of sources) {
    const scope = { template: parseTemplate(source), sqsEndpoint, exported };
    for (const resource of resolvedIn(scope)) {
      const { id } = resource;
      // AWS allows the same logical id in different templates. The local service does not, because it uses logical ids as names.
      if (resources.has(id)) throw new LocalError(`${id}: two templates have a resource of this logical id`);
      resources.set(id, resource);
    }
    const resolved = outputsIn(scope);
    outputs = Object.fromEntries(resolved.map(({ id, value }) => [id, value]));
    for (const { exportName, value } of resolved) {
      if (exportName === undefined) continue;
      if (exported.has(exportName)) throw new LocalError(`${exportName} is exported twice`);
      exported.set(exportName, value);
    }
  }
  const of = <S extends z.ZodMiniType>(schema: S): (z.infer<S> & Pick<Resolved, "id" | "name">)[] =>
    [...resources.values()]
      .filter((resource) => resource.schema === schema)
      .map(({ id, name, properties }) => Object.assign({}, z.parse(schema, properties), { id, name }));
  const api = only("REST API", of(schemas["AWS::ApiGateway::RestApi"]));
  const stack = {
    tables: of(schemas["AWS::DynamoDB::Table"]),
    queues: of(schemas["AWS::SQS::Queue"]),
    buckets: of(schemas["AWS::S3::Bucket"]),
    keys: of(schemas["AWS::KMS::Key"]),
    functions: of(schemas["AWS::Lambda::Function"]).map((spec) => ({
      ...spec,
      directory: path.resolve(assets, metadata(spec.id, "aws:asset:path", resources)),
      file: metadata(spec.id, "file", resources),
    })),
    eventSources: of(schemas["AWS::Lambda::EventSourceMapping"]),
    rules: of(schemas["AWS::Events::Rule"]),
    api: readDefinition(api.id, api.Body),
    stage: only("stage", of(schemas["AWS::ApiGateway::Stage"])),
    usagePlan: {
      ...only("usage plan", of(schemas["AWS::ApiGateway::UsagePlan"])),
      keys: keysOf(of(schemas["AWS::ApiGateway::UsagePlanKey"]), of(schemas["AWS::ApiGateway::ApiKey"])),
    },
    outputs,
  };
  refuseUnknownMethods(stack);
  return stack;
}

interface Resolved {
  readonly id: string;
  readonly name: string;
  readonly schema: z.ZodMiniType | undefined;
  /** The properties after all intrinsic functions are resolved. */
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

function resolvedIn(scope: Scope): Resolved[] {
  const problems: string[] = [];
  const resources = Object.entries(scope.template.Resources).flatMap(([id, resource]) => {
    const { Type: type, Metadata } = resource;
    if (ignoredTypes.has(type)) return [];
    try {
      const properties = resolve(resource.Properties, id, scope);
      problems.push(...faultsOf(id, type, properties));
      return [{ id, name: physicalName(id, resource), schema: schemaOf[type], properties, metadata: Metadata }];
    } catch (error) {
      problems.push(messageOf(error));
      return [];
    }
  });
  if (problems.length > 0) throw new LocalError(`the template cannot be hosted locally:\n${problems.join("\n")}`);
  return resources;
}

const schemaOf: Readonly<Record<string, z.ZodMiniType>> = schemas;

function faultsOf(id: string, type: string, properties: unknown): string[] {
  const schema = schemaOf[type];
  if (schema === undefined) return [`${id}: resources of type ${type} are not supported`];
  const parsed = z.safeParse(schema, properties);
  return parsed.success ? [] : [faults(id, parsed.error)];
}

function only<T>(kind: string, found: readonly T[]): T {
  const [one, ...others] = found;
  if (one === undefined || others.length > 0) throw new LocalError(`the templates must have exactly one ${kind}`);
  return one;
}

/** Throws for settings of the stage or usage plan for a method that the API lacks, because such settings would have no effect. */
function refuseUnknownMethods({ api, stage, usagePlan }: Pick<Stack, "api" | "stage" | "usagePlan">): void {
  const ofStages = api.methods.flatMap(({ path: of, verb }) =>
    (verb === "ANY" ? ANY : [verb]).map((one) => methodSetting(of, one)),
  );
  const ofPlans = api.methods.map(({ path: of, verb }) => planMethod(of, verb));
  const known = new Set(["* /*", ...ofStages, ...ofPlans]);
  const named = {
    [`${stage.id}.MethodSettings`]: stage.MethodSettings.map((one) => `${one.HttpMethod} ${one.ResourcePath}`),
    [`${usagePlan.id}.ApiStages`]: Object.keys(usagePlan.ApiStages[0].Throttle),
  };
  for (const [place, methods] of Object.entries(named)) {
    const unknown = methods.find((method) => !known.has(method));
    if (unknown !== undefined) throw new LocalError(`${place}: ${unknown} is not a method of the definition`);
  }
}

function keysOf(
  memberships: readonly { readonly id: string; readonly KeyId: string }[],
  keys: readonly { readonly name: string; readonly Value: string }[],
): string[] {
  return memberships.map(({ id, KeyId }) => {
    const found = keys.find(({ name }) => name === KeyId);
    if (found === undefined) throw new LocalError(`${id}: no API key is named ${KeyId}`);
    return found.Value;
  });
}

function metadata(id: string, key: string, resources: ReadonlyMap<string, Resolved>): string {
  const value = z.safeParse(z.string(), resources.get(id)?.metadata[key]);
  if (!value.success) throw new LocalError(`${id}: Metadata has no "${key}"`);
  return value.data;
}

export const isQueue = ({ EventSourceArn }: Mapping): boolean => EventSourceArn.startsWith("arn:aws:sqs:");

/** Returns true if the API calls this function for a method or as its authorizer. Returns false for a function that only events start. */
export function servesRequests({ name }: FunctionSpec, { authorizer, methods }: Api): boolean {
  const addresses = [
    authorizer.uri,
    ...methods.flatMap(({ integration }) => (integration.type === "aws_proxy" ? [integration.uri] : [])),
  ];
  return addresses.some((uri) => uri.includes(`:${name}/`));
}
