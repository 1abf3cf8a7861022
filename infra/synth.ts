/**
 * Bundles the functions and synthesizes the CDK stacks in this process. The local service, the tests, the command `cdk`, and commands such
 * as `npm run permissions` use this file.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { App, type AppProps, type Stack } from "aws-cdk-lib/core";
import recommendedFlags from "aws-cdk-lib/recommended-feature-flags.json" with { type: "json" };
import * as z from "zod/mini";
import { bundle } from "./build/bundle.ts";
import { cachedBundle } from "./build/bundle-cache.ts";
import { withoutNesting } from "./nested-stacks.ts";
import type { Route } from "./routes/route.ts";
import { authorizer, canary, eventFunctions, methodNotAllowed, routes } from "./routes/routes.ts";
import type { DeployConfig } from "./settings/config.ts";
import { createStacks } from "./stack/stacks.ts";

const Resource = z.looseObject({
  Type: z.string(),
  Properties: z._default(z.record(z.string(), z.unknown()), {}),
  Metadata: z._default(z.record(z.string(), z.unknown()), {}),
  DependsOn: z._default(z.union([z.string(), z.array(z.string())]), []),
  DeletionPolicy: z.optional(z.string()),
  UpdateReplacePolicy: z.optional(z.string()),
});
export type TemplateResource = z.infer<typeof Resource>;

export const CloudFormationTemplate = z.looseObject({
  Resources: z.record(z.string(), Resource),
  Parameters: z.optional(z.record(z.string(), z.unknown())),
  Outputs: z.record(
    z.string(),
    z.looseObject({ Value: z.unknown(), Export: z.optional(z.looseObject({ Name: z.string() })) }),
  ),
});
export type CloudFormationTemplate = z.infer<typeof CloudFormationTemplate>;

/** The CDK's feature flags: the recommended values, with two changes. The command `cdk` uses the same flags. */
const featureFlags = {
  ...recommendedFlags,
  "aws:cdk:enable-asset-metadata": true,
  // The CDK recommends "weak". With "strong", the stacks refer to each other by exports, so CloudFormation refuses to remove a resource
  // that the other stack uses.
  "@aws-cdk/core:defaultCrossStackReferences": "strong",
} as const;

export interface Templates {
  readonly data: CloudFormationTemplate;
  readonly service: CloudFormationTemplate;
}

/** Synthesizes both stacks, and overwrites earlier templates in `outDir`. `build` creates the bundles. */
export async function synthesize(
  config: DeployConfig,
  outDir: string,
  build: (files: readonly string[], outDir: string) => Promise<unknown> = bundle,
): Promise<Templates> {
  mkdirSync(outDir, { recursive: true });
  const bundles = resolve(outDir, "bundles");
  await build(functionFiles(), bundles);
  const app = createApp({
    outdir: outDir,
    treeMetadata: false,
    analyticsReporting: false,
    // The CDK's validation by CloudFormation's rules takes 1.5 s. It is off here, because the command `cdk` and a test apply the same
    // rules.
    builtinCloudFormationValidation: false,
    // `disable-asset-staging`: the CDK would copy the bundles for an upload, but this process uploads nothing.
    context: {
      "aws:cdk:disable-asset-staging": true,
      // The validation report contains warnings about deployments. They are switched off, because they do not concern a local start.
      "@aws-cdk/core:annotationsInValidationReport": false,
      // The CDK would record a stack trace for each resource and each value. Nothing reads them here, and they take a tenth of the time.
      "aws:cdk:disable-stack-trace": true,
      "aws:cdk:disable-creation-stack-traces": true,
    },
  });
  const { data, service } = createStacks(app, config, bundles);
  app.synth();
  const read = ({ templateFile }: Stack) => CloudFormationTemplate.parse(templateIn(outDir, templateFile));
  return { data: read(data), service: read(service) };
}

/** Instead of bundles, creates the empty directories that the CDK requires. The templates do not depend on their content. */
export async function emptyBundles(files: readonly string[], outDir: string): Promise<void> {
  for (const file of files) mkdirSync(join(outDir, file), { recursive: true });
}

export async function templatesWithoutCode(config: DeployConfig): Promise<Templates> {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-templates-"));
  try {
    return await synthesize(config, directory, emptyBundles);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Returns the logical id of a function's role. Returns undefined for any other resource, and for the CDK's own functions. */
export function roleOfFunction({ Type, Properties, Metadata }: TemplateResource): string | undefined {
  if (Type !== "AWS::Lambda::Function" || Metadata.file === undefined) return undefined;
  return RoleOf.parse(Properties).Role["Fn::GetAtt"][0];
}
const RoleOf = z.object({ Role: z.object({ "Fn::GetAtt": z.tuple([z.string(), z.literal("Arn")]) }) });

export function templateIn(directory: string, templateFile: string): unknown {
  const read = (file: string): unknown => JSON.parse(readFileSync(join(directory, file), "utf8"));
  // The CDK writes the file name of a nested template into the metadata of the nested stack.
  return withoutNesting(read(templateFile), (resource) => read(NestedStack.parse(resource).Metadata["aws:asset:path"]));
}
const NestedStack = z.object({ Metadata: z.object({ "aws:asset:path": z.string() }) });

/** Returns the templates in the order of deployment, because the service template imports values of the data template. */
export async function templatesInOrder(
  config: DeployConfig,
  outDir: string,
  options: Parameters<typeof cachedBundle>[2] = {},
  caches?: string,
  onBundled: () => void = () => undefined,
): Promise<CloudFormationTemplate[]> {
  const { data, service } = await synthesize(config, outDir, async (files, bundles) => {
    await cachedBundle(files, bundles, options, caches);
    onBundled();
  });
  return [data, service];
}

export function createApp(props: AppProps = {}): App {
  return new App({ ...props, context: { ...featureFlags, ...props.context } });
}

export function functionFiles(table: readonly Route[] = routes): string[] {
  return [...table, authorizer, methodNotAllowed, canary, ...Object.values(eventFunctions)].map(({ file }) => file);
}
