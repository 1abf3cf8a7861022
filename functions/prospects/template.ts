/** GET /api/prospects/import/template.csv: returns an empty CSV file with the columns of an import. */
import * as z from "zod/mini";
import { streamText } from "#shared/http/streaming.ts";
import { templateText } from "#shared/prospects/csv/format.ts";
import { named } from "#shared/schema.ts";

export const handler = streamText(
  {
    summary: "Get a template for imports",
    description:
      "A CSV file with one row: the names of the columns that an import reads. The column `id`, which `matchBy=id` needs, is missing, because an export has it with the ids of the prospects. Fill in rows, save the file as CSV UTF-8, and import it. A column that is not needed may be removed.",
    allow: "everyone",
    scope: "prospects:import",
    response: named("CsvTemplate", z.string(), "A CSV file in UTF-8 with a header row alone."),
    file: { mediaType: "text/csv", name: "prospects-template.csv" },
  },
  async () => templateText(),
);
