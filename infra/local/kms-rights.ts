/** What the policies of the template let each function do with keys: an action, in the encryption context that the statement names. */
import * as z from "zod/mini";
import type { KeyUse } from "./kms.ts";
import type { FunctionSpec } from "./stack.ts";
import { Template } from "./template.ts";

const OneOrMany = z.pipe(
  z.union([z.string(), z.array(z.string())]),
  z.transform((value) => (typeof value === "string" ? [value] : value)),
);
const Statement = z.looseObject({
  Action: OneOrMany,
  Condition: z.optional(z.looseObject({ StringEquals: z.optional(z.record(z.string(), OneOrMany)) })),
});
const Role = z.looseObject({
  Policies: z._default(z.array(z.object({ PolicyDocument: z.object({ Statement: z.array(Statement) }) })), []),
});
const RoleOf = z.object({ Role: z.object({ "Fn::GetAtt": z.tuple([z.string(), z.string()]) }) });

const CONTEXT = "kms:EncryptionContext:";

/** Why a use is refused. Operators, who are no functions, may do what they like with the keys of this machine. */
export function keyRefusal(
  templates: readonly unknown[],
  functions: readonly Pick<FunctionSpec, "id" | "name">[],
): (use: KeyUse) => string | undefined {
  const resources = Object.fromEntries(
    templates.flatMap((template) => Object.entries(z.parse(Template, template).Resources)),
  );
  const statements = new Map(
    functions.map(({ id, name }) => {
      const [roleId] = z.parse(RoleOf, resources[id]?.Properties).Role["Fn::GetAtt"];
      const { Policies } = z.parse(Role, resources[roleId]?.Properties);
      return [name, Policies.flatMap(({ PolicyDocument }) => PolicyDocument.Statement)] as const;
    }),
  );
  return ({ caller, action, context }) => {
    const own = statements.get(caller);
    const isGranted = own?.some(
      (statement) => statement.Action.includes(action) && meets(statement.Condition?.StringEquals ?? {}, context),
    );
    return own === undefined || isGranted ? undefined : `${caller} is not authorized to perform ${action}`;
  };
}

const meets = (wanted: Readonly<Record<string, readonly string[]>>, context: KeyUse["context"]): boolean =>
  Object.entries(wanted).every(
    ([name, values]) => name.startsWith(CONTEXT) && values.includes(context[name.slice(CONTEXT.length)] ?? ""),
  );
