/** The policy statements of each function's role, as the templates have them: what IAM would judge its calls by. */
import * as z from "zod/mini";
import type { FunctionSpec } from "./stack.ts";
import { Template } from "./template.ts";

/** IAM takes one text or a list. */
export const OneOrMany = z.pipe(
  z.union([z.string(), z.array(z.string())]),
  z.transform((value) => (typeof value === "string" ? [value] : value)),
);

const Statement = z.looseObject({
  Action: OneOrMany,
  Resource: z.unknown(),
  Condition: z.optional(z.record(z.string(), z.unknown())),
});
export type Statement = z.infer<typeof Statement>;

const Role = z.looseObject({
  Policies: z._default(z.array(z.object({ PolicyDocument: z.object({ Statement: z.array(Statement) }) })), []),
});
const RoleOf = z.object({ Role: z.object({ "Fn::GetAtt": z.tuple([z.string(), z.string()]) }) });

/** By the function's name. A function without a role of the templates may do nothing. */
export function statementsByFunction(
  templates: readonly unknown[],
  functions: readonly Pick<FunctionSpec, "id" | "name">[],
): Map<string, readonly Statement[]> {
  const resources = Object.fromEntries(
    templates.flatMap((template) => Object.entries(z.parse(Template, template).Resources)),
  );
  return new Map(
    functions.map(({ id, name }) => {
      const role = z.safeParse(RoleOf, resources[id]?.Properties);
      if (!role.success) return [name, []];
      const [roleId] = role.data.Role["Fn::GetAtt"];
      const { Policies } = z.parse(Role, resources[roleId]?.Properties);
      return [name, Policies.flatMap(({ PolicyDocument }) => PolicyDocument.Statement)];
    }),
  );
}
