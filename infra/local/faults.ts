/** What a schema finds wrong in a template, as lines for the person who starts the service. */
import type * as z from "zod/mini";

/** One line for each fault, with the path of the property below `place`. */
export function faults(place: string, error: z.core.$ZodError): string {
  return error.issues
    .map((issue) => {
      const at = [place, ...issue.path].join(".");
      if (issue.code !== "unrecognized_keys") return `${at}: ${issue.message}`;
      return issue.keys.map((key) => `${at}.${key}: not supported by the local runtime`).join("\n");
    })
    .join("\n");
}
