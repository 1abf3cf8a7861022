/** Compares the IAM policies of a function before and after a deployment, and finds the rights that the deployment takes away. */
import * as z from "zod/mini";

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

/** The property `Policies` of an IAM role. Its values may be strings or expressions of CloudFormation such as `Fn::GetAtt`. */
export const Policies = z._default(
  z.array(z.object({ PolicyDocument: z.object({ Statement: z.array(Statement) }) })),
  [],
);

export const Right = z.object({
  action: z.string(),
  /** The resource, as an ARN or as the JSON text of a CloudFormation expression for the ARN. */
  on: z.string(),
  /** The patterns of the partition keys that the action may use. Undefined if it may use all partition keys. */
  keys: z.optional(z.array(z.string())),
  /** The JSON of the statement's other conditions, without the condition on partition keys. Undefined if there are no others. */
  condition: z.optional(z.string()),
});
export type Right = z.infer<typeof Right>;

const KEYS = "dynamodb:LeadingKeys";

/** Returns a right for each action on each resource. Throws if a statement denies something, because `lostRights` does not support this. */
export function rightsOf(policies: unknown): Right[] {
  const statements = Policies.parse(policies).flatMap(({ PolicyDocument }) => PolicyDocument.Statement);
  return statements.flatMap(({ Action, Resource, Condition = {} }) => {
    const { "ForAllValues:StringLike": patterns, ...others } = Condition;
    const keys = patterns?.[KEYS] === undefined ? undefined : OneOrMany.parse(patterns[KEYS]);
    const condition = Object.keys(others).length === 0 ? undefined : JSON.stringify(others);
    const resources = (Array.isArray(Resource) ? Resource : [Resource]).map((one: unknown) =>
      typeof one === "string" ? one : JSON.stringify(one),
    );
    return Action.flatMap((action) => resources.map((on): Right => ({ action, on, keys, condition })));
  });
}

/** Returns the rights that `after` lacks. One right must allow all keys of an old right, because IAM does not combine statements. */
export function lostRights(before: readonly Right[], after: readonly Right[]): Right[] {
  return before.filter(
    ({ action, on, keys, condition }) =>
      !after.some(
        (other) =>
          other.action === action &&
          other.on === on &&
          other.condition === condition &&
          (other.keys === undefined || keys?.every((pattern) => other.keys?.includes(pattern)) === true),
      ),
  );
}
