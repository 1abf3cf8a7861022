/** What the policies of the template let each function do with keys: an action, in the encryption context that the statement names. */
import * as z from "zod/mini";
import type { KeyUse } from "./kms.ts";
import { OneOrMany, type Statement, statementsByFunction } from "./role-statements.ts";
import type { FunctionSpec } from "./stack.ts";

const Condition = z.object({ StringEquals: z.optional(z.record(z.string(), OneOrMany)) });

const CONTEXT = "kms:EncryptionContext:";

/** Why a use is refused. Operators, who are no functions, may do what they like with the keys of this machine. */
export function keyRefusal(
  templates: readonly unknown[],
  functions: readonly Pick<FunctionSpec, "id" | "name">[],
): (use: KeyUse) => string | undefined {
  const statements = statementsByFunction(templates, functions);
  return ({ caller, action, context }) => {
    const own = statements.get(caller);
    const isGranted = own?.some(
      (statement) => statement.Action.includes(action) && meets(equalities(statement), context),
    );
    return own === undefined || isGranted ? undefined : `${caller} is not authorized to perform ${action}`;
  };
}

const equalities = (statement: Statement): Readonly<Record<string, readonly string[]>> =>
  z.parse(Condition, statement.Condition ?? {}).StringEquals ?? {};

const meets = (wanted: Readonly<Record<string, readonly string[]>>, context: KeyUse["context"]): boolean =>
  Object.entries(wanted).every(
    ([name, values]) => name.startsWith(CONTEXT) && values.includes(context[name.slice(CONTEXT.length)] ?? ""),
  );
