/** Statements in the IAM policies of a synthesized template. */
import * as z from "zod/mini";

/** IAM allows both for actions and for the values of conditions. */
export const OneOrMany = z.pipe(
  z.union([z.string(), z.array(z.string())]),
  z.transform((value) => (typeof value === "string" ? [value] : value)),
);

export const Statement = z.looseObject({
  Effect: z.literal("Allow"),
  Action: OneOrMany,
  Resource: z.unknown(),
  Condition: z.optional(z.record(z.string(), z.record(z.string(), z.unknown()))),
});
export type Statement = z.infer<typeof Statement>;
