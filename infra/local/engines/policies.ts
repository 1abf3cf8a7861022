/** Reads the functions' IAM policies from the templates. The local servers of DynamoDB, S3 and KMS refuse calls that no policy allows. */
import * as z from "zod/mini";
import { OneOrMany, Policies, type Statement } from "../../release/rights.ts";
import { Template } from "../template/resources.ts";
import type { FunctionSpec } from "../template/stack.ts";
import type { KeyUse } from "./kms.ts";

const Role = z.looseObject({ Policies });
const RoleOf = z.object({ Role: z.object({ "Fn::GetAtt": z.tuple([z.string(), z.string()]) }) });

/** The statements of each function's policies, by the function's name. */
export type PolicyStatements = ReadonlyMap<string, readonly Statement[]>;

export function statementsByFunction(
  templates: readonly unknown[],
  functions: readonly Pick<FunctionSpec, "id" | "name">[],
): PolicyStatements {
  const resources = Object.fromEntries(
    templates.flatMap((template) => Object.entries(z.parse(Template, template).Resources)),
  );
  return new Map(
    functions.map(({ id, name }) => {
      const role = z.safeParse(RoleOf, resources[id]?.Properties);
      if (!role.success) return [name, []];
      const [roleId] = role.data.Role["Fn::GetAtt"];
      const { Policies: own } = z.parse(Role, resources[roleId]?.Properties);
      return [name, own.flatMap(({ PolicyDocument }) => PolicyDocument.Statement)];
    }),
  );
}

export type FileRights = ReturnType<typeof fileRights>;

/**
 * Checks rights to files by folder. For example, a function with the right `s3:GetObject` on `…/uploads/*` may read the objects whose keys
 * begin with `uploads/`. A caller that is not a function may do everything.
 */
export function fileRights(statements: PolicyStatements) {
  return {
    mayDo(name: string, action: string, key: string): boolean {
      const folder = key.split("/")[0] ?? "";
      const own = statements.get(name);
      const isGranted = own?.some(
        ({ Action, Resource }) => Action.includes(`s3:${action}`) && JSON.stringify(Resource).includes(`/${folder}/*`),
      );
      return own === undefined || isGranted === true;
    },
    /** For a missing object, S3 responds with 404 to callers that may list the bucket, and with 403 to all others. */
    mayList: (name: string): boolean =>
      statements.get(name)?.some(({ Action }) => Action.includes("s3:ListBucket")) ?? true,
  };
}

/** Returns the S3 action that a request needs, without the prefix `s3:`. */
export function fileAction(method: string | undefined, { searchParams }: URL): string {
  if (method === "GET" || method === "HEAD") return "GetObject";
  if (method !== "DELETE") return "PutObject";
  return searchParams.has("uploadId") ? "AbortMultipartUpload" : "DeleteObject";
}

const KeyCondition = z.object({ StringEquals: z.optional(z.record(z.string(), OneOrMany)) });
const CONTEXT = "kms:EncryptionContext:";

/** Returns a function that says why a caller may not use a KMS key. A caller that is not a function may use all keys. */
export function keyRefusal(statements: PolicyStatements): (use: KeyUse) => string | undefined {
  return ({ caller, action, context }) => {
    const own = statements.get(caller);
    const isGranted = own?.some(({ Action, Condition }) => {
      const { StringEquals = {} } = z.parse(KeyCondition, Condition ?? {});
      const isMet = Object.entries(StringEquals).every(
        ([name, values]) => name.startsWith(CONTEXT) && values.includes(context[name.slice(CONTEXT.length)] ?? ""),
      );
      return Action.includes(action) && isMet;
    });
    return own === undefined || isGranted ? undefined : `${caller} is not authorized to perform ${action}`;
  };
}
