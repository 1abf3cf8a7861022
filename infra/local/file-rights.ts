/** What each function may do with files, by its role's policy: S3 on this machine refuses what IAM would refuse. */
import type { IncomingMessage } from "node:http";
import { statementsByFunction } from "./role-statements.ts";
import type { FunctionSpec } from "./stack.ts";

export interface FileRights {
  /** Whether a function of this name may do this with the file. Callers that are no function may do anything. */
  mayDo(name: string, action: string, key: string): boolean;
  /** Whether S3 tells it that a file is not there. */
  mayList(name: string): boolean;
}

/** `s3:GetObject` on `.../uploads/*` is the right to get files whose key begins with `uploads/`. */
export function fileRights(templates: readonly unknown[], functions: readonly FunctionSpec[]): FileRights {
  const grants = statementsByFunction(templates, functions);
  return {
    mayDo: (name, action, key) => {
      const folder = key.split("/")[0] ?? "";
      const own = grants.get(name);
      return (
        own === undefined ||
        own.some(
          ({ Action, Resource }) =>
            Action.includes(`s3:${action}`) && JSON.stringify(Resource).includes(`/${folder}/*`),
        )
      );
    },
    mayList: (name) => grants.get(name)?.some(({ Action }) => Action.includes("s3:ListBucket")) ?? true,
  };
}

/** Functions are known by their access key, which is their name: in the signature of the request, or in that of a link. */
export function signerOf({ headers }: IncomingMessage, { searchParams }: URL): string {
  const signed = /Credential=([^/]+)\//.exec(headers.authorization ?? "")?.[1];
  return signed ?? searchParams.get("X-Amz-Credential")?.split("/")[0] ?? "";
}

/** The right that a request on an object needs. */
export function fileAction(method: string | undefined, { searchParams }: URL): string {
  if (method === "GET" || method === "HEAD") return "GetObject";
  if (method !== "DELETE") return "PutObject";
  return searchParams.has("uploadId") ? "AbortMultipartUpload" : "DeleteObject";
}
