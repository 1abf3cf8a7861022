/** POST /api/prospects/import: imports a CSV file of up to 10 000 rows. The response comes when the import is complete. */
import { openObjects } from "#shared/aws/s3.ts";
import { committing } from "#shared/http/endpoint.ts";
import { UploadedFile, uploadedFile } from "#shared/http/request-body.ts";
import { importFile, UNKNOWN_OUTCOME } from "#shared/jobs/import/import.ts";
import { FileQuery, FileResult } from "#shared/jobs/import/schema.ts";
import * as limits from "#shared/limits.ts";
import { mobileHeaders, synonyms } from "#shared/prospects/csv/header.ts";

const objects = openObjects();

const listOf = (headers: readonly string[]): string => headers.map((header) => `\`${header}\``).join(", ");
const SYNONYMS_TEXT = `Other headers are read too: ${synonyms.map(([field, headers]) => `${listOf(headers)} as \`${field}\``).join("; ")}; ${listOf(mobileHeaders)} as \`secondaryPhoneNumber\`, or as \`phone\` if no other column is. \`firstName\` and \`lastName\` are joined where there is no \`name\`. The name of a column wins over its synonyms, and a faulty value below a synonym is left empty and counted in \`warnings\`.`;

export const handler = committing(
  {
    summary: "Import prospects from CSV",
    description: `Accepts one file of at most ${limits.importRows} data rows and ${limits.importBytes} bytes, in UTF-8, UTF-16 or Windows-1252, with cells separated by commas, semicolons or tabs. A first line \`sep=;\` names the separator. With semicolons or tabs a decimal comma is read too. The first row names the columns, in upper or lower case: \`name\`, \`phone\`, \`email\`, \`lat\`, \`lng\`, \`address1\`, \`address2\`, \`city\`, \`state\`, \`zip\`, \`status\` (its value), \`assignedTo\` or \`assignedToEmail\` (the e-mail address of a user; \`assignedToEmail\` takes precedence), \`tags\` (separated by semicolons), \`notes\`, \`source\`, \`sourceId\`, \`secondaryPhoneNumber\`, \`customFieldData\` (JSON). ${SYNONYMS_TEXT} The file may have every column of an export. \`createdBy\`, \`createdAt\` and \`updatedAt\` are ignored, and \`id\` is read only with \`matchBy=id\`. \`ignoredColumns\` names the columns that were not read. A file whose rows have no name, phone, e-mail, address or coordinates is refused. A row without a value is not a data row. Missing cells at the end of a row and cells of blanks are empty. A row that creates a prospect needs a full address or both coordinates. Each data row creates one prospect, updates one (with \`onMatch=update\`) or has one entry in \`errors\`, of at most ${limits.rowFault} characters: the first faults of the row and the number of the others. Updates are visible immediately. After them, all created prospects become visible together. With \`matchBy=sourceId\` or \`matchBy=emailAddress\` the company may have at most ${limits.importMatchProspects} prospects in ${limits.importMatchBlocks} blocks of 128 ids; otherwise the answer is 413, and an import job can do it: \`POST /api/prospects/imports\`. If the answer is 503, no prospect becomes visible later, unless \`detail\` says that the outcome is unknown. With \`dryRun=true\` the file is only checked; if no header is known, the answer has \`columns\` for a \`mapping\`. Send an \`Idempotency-Key\` to repeat the request safely; \`GET /api/prospects/imports/{id}\` shows the result again.`,
    allow: "canManageProspects",
    scope: "prospects:import",
    query: FileQuery,
    body: UploadedFile,
    upload: uploadedFile({
      bytes: limits.importBytes,
      otherwise: "For larger ones make an import job: POST /api/prospects/imports.",
    }),
    response: FileResult,
    unknownOutcome: UNKNOWN_OUTCOME,
  },
  ({ context, caller, query, body }, commit) => importFile({ ...context, objects }, caller, body.file, query, commit),
);
