/** The synthesized CloudFormation template as this runtime reads it, before any reference is resolved. */
import * as z from "zod/mini";

const Fields = z.record(z.string(), z.unknown());

const Resource = z.strictObject({
  Type: z.string(),
  Properties: z._default(Fields, {}),
  Metadata: z._default(Fields, {}),
  Condition: z.optional(z.string()),
  // Creation order and what becomes of a resource when its stack goes have no meaning here: the data directory stays.
  DependsOn: z.optional(z.unknown()),
  DeletionPolicy: z.optional(z.unknown()),
  UpdateReplacePolicy: z.optional(z.unknown()),
});

export const Template = z.strictObject({
  Resources: z.record(z.string(), Resource),
  Outputs: z._default(
    z.record(
      z.string(),
      z.looseObject({
        Value: z.unknown(),
        Condition: z.optional(z.string()),
        Export: z.optional(z.strictObject({ Name: z.unknown() })),
      }),
    ),
    {},
  ),
  Parameters: z._default(z.record(z.string(), z.looseObject({ Default: z.optional(z.unknown()) })), {}),
  Conditions: z._default(Fields, {}),
  Mappings: z._default(z.record(z.string(), z.record(z.string(), Fields)), {}),
  // Rules check parameters of a deployment (the bootstrap version), metadata and descriptions are for people.
  Rules: z.optional(z.unknown()),
  Metadata: z.optional(z.unknown()),
  Description: z.optional(z.unknown()),
  AWSTemplateFormatVersion: z.optional(z.unknown()),
});
export type Template = z.infer<typeof Template>;
export type TemplateResource = Template["Resources"][string];
