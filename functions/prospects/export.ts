/** GET /api/prospects/export: all prospects as a CSV file, filtered as the list is. */
import * as z from "zod/mini";
import { streamFile } from "#shared/http/stream-endpoint.ts";
import { exportProspects } from "#shared/prospects/csv/export.ts";
import { ProspectFilter } from "#shared/prospects/filter.ts";

export const handler = streamFile(
  {
    summary: "Export prospects as CSV",
    description:
      "Takes the filters of the list and no paging: every match in the order of the list, streamed in batches of 500, gzipped when accepted. Lines end in CRLF and the header is always there. A cell that a spreadsheet would take for a formula begins with `'`; the import takes it off again. Which prospects are in the file is decided when the export begins; each is written as it is when its turn comes. A file that ends early is a broken connection.",
    tag: "Prospects",
    allow: "everyone",
    query: ProspectFilter,
    status: 200,
    response: z.string(),
    file: { mediaType: "text/csv", name: "prospects.csv" },
  },
  ({ context, caller, query }) => exportProspects(context, caller, query),
);
