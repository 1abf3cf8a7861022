/** Errors that make a start of the local service fail. The user sees each message without a stack trace. */
import type * as z from "zod/mini";
import { codeOf, pathOf } from "../../cli/command/error.ts";

export class LocalError extends Error {
  override name = "LocalError";
}

export function faults(path: string, error: z.core.$ZodError): string {
  return error.issues
    .map((issue) => {
      const at = [path, ...issue.path].join(".");
      if (issue.code !== "unrecognized_keys") return `${at}: ${issue.message}`;
      return issue.keys.map((key) => `${at}.${key}: not supported by the local runtime`).join("\n");
    })
    .join("\n");
}

const UNWRITABLE = ["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "ENOTDIR"];

/** Returns one sentence with what to do if a start fails because a file cannot be written. Returns undefined for other errors. */
export function unwritable(error: unknown): string | undefined {
  const code = codeOf(error) ?? "";
  if (!UNWRITABLE.includes(code)) return undefined;
  return `${pathOf(error) ?? "a file"} cannot be written (${code}): set DATA_DIR to a directory that this user may write, on a disk with free space`;
}
