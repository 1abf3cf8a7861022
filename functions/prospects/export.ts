/** GET /api/prospects/export: streams all prospects that match the filters as a CSV file. */
import * as z from "zod/mini";
import { streamText } from "#shared/http/streaming.ts";
import { ExportQuery } from "#shared/jobs/export/schema.ts";
import { exportProspects } from "#shared/prospects/csv/export.ts";
import { paging } from "#shared/prospects/filter.ts";
import { named } from "#shared/schema.ts";

export const handler = streamText(
  {
    summary: "Export prospects as CSV",
    description:
      "Accepts the filters of the list, ignores `page` and `pageSize`, and streams every match in list order, gzipped if the client accepts it. The first line is always the header. A cell that a spreadsheet would run as a formula begins with `'`, which an import removes again. A prospect that changes during the export appears as it was before or after the change. If an error occurs, the connection breaks, so a client can notice an incomplete file.",
    allow: "everyone",
    scope: "prospects:export",
    query: ExportQuery,
    ignoredQuery: paging,
    response: named("CsvFile", z.string(), "A CSV file in UTF-8 whose lines end in CRLF."),
    file: { mediaType: "text/csv", name: "prospects.csv" },
  },
  ({ context, caller, query }) => exportProspects(context, caller, query, query),
);
