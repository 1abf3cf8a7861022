/** Judges the policy that an authorizer answers with, as IAM does: what nothing allows is denied, and a denial wins. */
import * as z from "zod/mini";

const OneOrMany = z.pipe(
  z.union([z.string(), z.array(z.string())]),
  z.transform((value) => (typeof value === "string" ? [value] : value)),
);
const Statement = z.strictObject({
  Sid: z.optional(z.string()),
  Effect: z.enum(["Allow", "Deny"]),
  Action: OneOrMany,
  Resource: OneOrMany,
});
const Statements = z.pipe(
  z.union([Statement, z.array(Statement)]),
  z.transform((value) => (Array.isArray(value) ? value : [value])),
);

/** Conditions are not supported: an authorizer that answers with one is refused as if its answer was malformed. */
export const Policy = z.strictObject({ Version: z.literal("2012-10-17"), Statement: Statements });
export type Policy = z.infer<typeof Policy>;

export function allows(policy: Policy, action: string, resource: string): boolean {
  const about = policy.Statement.filter(
    ({ Action, Resource }) => matchesAny(Action, action) && matchesAny(Resource, resource),
  );
  return about.some(({ Effect }) => Effect === "Allow") && about.every(({ Effect }) => Effect === "Allow");
}

const matchesAny = (patterns: readonly string[], text: string): boolean =>
  patterns.some((pattern) => wildcards(pattern).test(text));

/** `*` is any text, slashes included, and `?` any character. */
function wildcards(pattern: string): RegExp {
  const escaped = pattern.replaceAll(/[.+^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replaceAll("*", ".*").replaceAll("?", ".")}$`);
}
