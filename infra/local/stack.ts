/** Reads a synthesized template into the parts that this runtime hosts, and refuses what it cannot honour. */
import path from "node:path";
import * as z from "zod/mini";
import { ApiResource, GatewayResponse, Method, RestApi, Stage } from "./api-resources.ts";
import { LocalError, messageOf } from "./error.ts";
import { holds, resolve, type Surroundings } from "./intrinsics.ts";
import { physicalName } from "./names.ts";
import {
  Bucket,
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
  readonly functions: readonly FunctionSpec[];
  readonly eventSources: readonly Named<typeof EventSourceMapping>[];
  readonly invokeConfigs: readonly Named<typeof EventInvokeConfig>[];
  readonly rules: readonly Named<typeof Rule>[];
  readonly restApis: readonly Named<typeof RestApi>[];
  readonly apiResources: readonly Named<typeof ApiResource>[];
  readonly methods: readonly Named<typeof Method>[];
  readonly gatewayResponses: readonly Named<typeof GatewayResponse>[];
  readonly stages: readonly Named<typeof Stage>[];
  readonly outputs: Readonly<Record<string, string>>;
}

const schemas: Record<string, z.ZodMiniType> = {
  "AWS::DynamoDB::Table": Table,
  "AWS::DynamoDB::GlobalTable": GlobalTable,
  "AWS::SQS::Queue": Queue,
  "AWS::S3::Bucket": Bucket,
  "AWS::Lambda::Function": LambdaFunction,
  "AWS::Lambda::EventSourceMapping": EventSourceMapping,
  "AWS::Lambda::EventInvokeConfig": EventInvokeConfig,
  "AWS::Events::Rule": Rule,
  "AWS::ApiGateway::RestApi": RestApi,
  "AWS::ApiGateway::Resource": ApiResource,
  "AWS::ApiGateway::Method": Method,
  "AWS::ApiGateway::GatewayResponse": GatewayResponse,
  "AWS::ApiGateway::Stage": Stage,
};

/**
 * `assets` is the directory that asset paths are relative to. Throws a LocalError that names every logical id and
 * property which cannot be honoured.
 */
export function readStack(source: unknown, sqsEndpoint: string, assets: string): Stack {
  const parsed = z.safeParse(Template, source);
  if (!parsed.success)
    throw new LocalError(`the template cannot be hosted locally:\n${faults("template", parsed.error)}`);
  const template = parsed.data;
  const around = { template, sqsEndpoint };
  const present = Object.entries(template.Resources).filter(
    ([, resource]) => resource.Condition === undefined || holds(resource.Condition, around),
  );
  refuseWhatCannotBeHonoured(present, around);
  const of = <S extends z.ZodMiniType>(type: string, schema: S) => parseAll(present, type, schema, around);
  return {
    tables: [...of("AWS::DynamoDB::Table", Table), ...of("AWS::DynamoDB::GlobalTable", GlobalTable)],
    queues: of("AWS::SQS::Queue", Queue),
    buckets: of("AWS::S3::Bucket", Bucket),
    functions: of("AWS::Lambda::Function", LambdaFunction).map((spec) => ({
      ...spec,
      directory: path.resolve(assets, metadata(spec.id, "aws:asset:path", template)),
      file: metadata(spec.id, "file", template),
    })),
    eventSources: of("AWS::Lambda::EventSourceMapping", EventSourceMapping),
    invokeConfigs: of("AWS::Lambda::EventInvokeConfig", EventInvokeConfig),
    rules: of("AWS::Events::Rule", Rule),
    restApis: of("AWS::ApiGateway::RestApi", RestApi),
    apiResources: of("AWS::ApiGateway::Resource", ApiResource),
    methods: of("AWS::ApiGateway::Method", Method),
    gatewayResponses: of("AWS::ApiGateway::GatewayResponse", GatewayResponse),
    stages: of("AWS::ApiGateway::Stage", Stage),
    outputs: readOutputs(around),
  };
}

type Resources = readonly (readonly [string, TemplateResource])[];

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

function metadata(id: string, key: string, template: Template): string {
  const value = z.safeParse(z.string(), template.Resources[id]?.Metadata[key]);
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

/** One line for each fault, with the path of the property below the logical id. */
function faults(id: string, error: z.core.$ZodError): string {
  return error.issues
    .map((issue) => {
      const place = [id, ...issue.path].join(".");
      if (issue.code !== "unrecognized_keys") return `${place}: ${issue.message}`;
      return issue.keys.map((key) => `${place}.${key}: not supported by the local runtime`).join("\n");
    })
    .join("\n");
}
