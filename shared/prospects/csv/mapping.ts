/** Which column of ours a header of the file stands for, where they are not called alike. */
import * as z from "zod/mini";
import { limits } from "#shared/limits.ts";
import { exportColumns } from "#shared/prospects/csv/columns.ts";
import { text } from "#shared/schema.ts";

/** Null: the column is left alone. */
export const Mapping = z.record(text(limits.csvHeader), z.nullable(z.enum(exportColumns))).check(
  z.refine((mapping) => Object.keys(mapping).length <= limits.mappedColumns, {
    error: `must name at most ${limits.mappedColumns} columns`,
  }),
);
export type Mapping = z.infer<typeof Mapping>;

/** As a query parameter: JSON. */
export const MappingText = z.pipe(
  z.pipe(
    z.string().check(z.maxLength(limits.queryParameter)),
    z.transform((value, context) => {
      try {
        return JSON.parse(value);
      } catch {
        context.issues.push({ code: "custom", message: "must be JSON", input: value });
        return z.NEVER;
      }
    }),
  ),
  Mapping,
);
