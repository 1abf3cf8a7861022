/** Reads the synthesized templates into the parts that this runtime hosts, and refuses what it cannot honour. */
import path from "node:path";
import * as z from "zod/mini";
import { type Api, readDefinition } from "./api-definition.ts";
import { methodSetting, RestApi, Stage } from "./api-resources.ts";
import { LocalError, messageOf } from "./error.ts";
import { faults } from "./faults.ts";
import { holds, resolve, type Surroundings } from "./intrinsics.ts";
import { physicalName } from "./names.ts";
import {
  Bucket,
  EncryptionKey,
  EventInvokeConfig,
  EventSourceMapping,
  GlobalTable,
  LambdaFunction,
  Queue,
  Rule,
  Table,
  typesWithoutMeaning,
} from "./resources.ts";
import { Template, type TemplateResource } from "./template.ts";

/** A resource with its logical id, its name on this machine and its resolved properties. */
export type Named<S extends z.ZodMiniType> = z.infer<S> & { readonly id: string; readonly name: string };
export type FunctionSpec = Named<typeof LambdaFunction> & {
  /** Directory of its bundle. */
  readonly directory: string;
  /** File below `functions/` as the template's metadata names it. */
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
  /** Those of the last template, which is the service's own. */
  readonly outputs: Readonly<Record<string, string>>;
}

const schemas: Record<string, z.ZodMiniType> = {
  "AWS::DynamoDB::Table": Table,
  "AWS::DynamoDB::GlobalTable": GlobalTable,
  "AWS::SQS::Queue": Queue,
  "AWS::S3::Bucket": Bucket,
  "AWS::KMS::Key": EncryptionKey,
  "AWS::Lambda::Function": LambdaFunction,
  "AWS::Lambda::EventSourceMapping": EventSourceMapping,
  "AWS::Lambda::EventInvokeConfig": EventInvokeConfig,
  "AWS::Events::Rule": Rule,
  "AWS::ApiGateway::RestApi": RestApi,
  "AWS::ApiGateway::Stage": Stage,
};

/**
 * `sources` are the templates in the order in which they are deployed; each may use what an earlier one exports. `assets` is
 * the directory that asset paths are relative to. Throws a LocalError that names every logical id and property which cannot
 * be honoured.
 */
export function readStack(sources: readonly unknown[], sqsEndpoint: string, assets: string): Stack {
  const read: Read[] = [];
  const exported = new Map<string, unknown>();
  for (const source of sources) {
    const around = { template: parseTemplate(source), sqsEndpoint, exported: new Map(exported) };
    const present = Object.entries(around.template.Resources).filter(
      ([, resource]) => resource.Condition === undefined || holds(resource.Condition, around),
    );
    refuseWhatCannotBeHonoured(present, around);
    addExports(exported, around);
    read.push({ around, present });
  }
  refuseSameNames(read);
  const of = <S extends z.ZodMiniType>(type: string, schema: S) =>
    read.flatMap(({ around, present }) => parseAll(present, type, schema, around));
  const last = read.at(-1)?.around;
  const api = readApi(of("AWS::ApiGateway::RestApi", RestApi));
  const stages = of("AWS::ApiGateway::Stage", Stage);
  for (const stage of stages) refuseOtherMethods(stage, api);
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
    eventSources: of("AWS::Lambda::EventSourceMapping", EventSourceMapping),
    invokeConfigs: of("AWS::Lambda::EventInvokeConfig", EventInvokeConfig),
    rules: of("AWS::Events::Rule", Rule),
    api,
    stages,
    outputs: last === undefined ? {} : readOutputs(last),
  };
}

type Resources = readonly (readonly [string, TemplateResource])[];

/** A template and those of its resources whose condition holds. */
interface Read {
  readonly around: Surroundings;
  readonly present: Resources;
}

function parseTemplate(source: unknown): Template {
  const parsed = z.safeParse(Template, source);
  if (parsed.success) return parsed.data;
  throw new LocalError(`the template cannot be hosted locally:\n${faults("template", parsed.error)}`);
}

function addExports(exported: Map<string, unknown>, around: Surroundings): void {
  for (const [id, { Export, Value }] of Object.entries(around.template.Outputs)) {
    if (Export === undefined) continue;
    const name = z.parse(z.string(), resolve(Export.Name, `Outputs.${id}.Export`, around));
    if (exported.has(name)) throw new LocalError(`Outputs.${id}.Export: ${name} is exported twice`);
    exported.set(name, resolve(Value, `Outputs.${id}`, around));
  }
}

/** On one machine a name is a logical id, which is another stack's own business on AWS. */
function refuseSameNames(read: readonly Read[]): void {
  const seen = new Set<string>();
  const hosted = read.flatMap(({ present }) => present).filter(([, { Type }]) => !typesWithoutMeaning.has(Type));
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

/** A throttle of a method that is not there would limit nothing. */
function refuseOtherMethods({ id, MethodSettings }: Named<typeof Stage>, { methods }: Api): void {
  const known = new Set(["* /*", ...methods.map(({ path: of, verb }) => methodSetting(of, verb))]);
  const [unknown] = MethodSettings.map(({ HttpMethod, ResourcePath }) => `${HttpMethod} ${ResourcePath}`).filter(
    (setting) => !known.has(setting),
  );
  if (unknown !== undefined) throw new LocalError(`${id}.MethodSettings: ${unknown} is no method of the definition`);
}

function refuseWhatCannotBeHonoured(resources: Resources, around: Surroundings): void {
  const problems = resources.flatMap(([id, resource]) => {
    if (typesWithoutMeaning.has(resource.Type)) return [];
    const schema = schemas[resource.Type];
    if (schema === undefined) return [`${id}: resources of type ${resource.Type} are not supported`];
    try {
      const parsed = z.safeParse(schema, resolve(resource.Properties, id, around));
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
  around: Surroundings,
): (z.infer<S> & { id: string; name: string })[] {
  return resources
    .filter(([, resource]) => resource.Type === type)
    .map(([id, resource]) =>
      Object.assign({}, z.parse(schema, resolve(resource.Properties, id, around)), {
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

function readOutputs(around: Surroundings): Record<string, string> {
  const present = Object.entries(around.template.Outputs).filter(
    ([, output]) => output.Condition === undefined || holds(output.Condition, around),
  );
  return Object.fromEntries(
    present.map(([name, output]) => [name, z.parse(z.string(), resolve(output.Value, `Outputs.${name}`, around))]),
  );
}
