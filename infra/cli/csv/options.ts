/** Reads the command-line options of the CSV command. */
import * as z from "zod/mini";
import { NewExport } from "#shared/jobs/export/schema.ts";
import { type Column, exportColumns, importColumns, knownColumns } from "#shared/prospects/csv/format.ts";
import { columnNamed, UNMAPPABLE } from "#shared/prospects/csv/header.ts";
import { MatchBy, OnMatch } from "#shared/prospects/match-key.ts";
import { serviceUrl } from "../../local/servers/address.ts";
import { HttpUrl, must } from "../command/accepted.ts";
import { argumentsOf, checked, optionsIn, unknownCommand, WrongUsage } from "../command/options.ts";

/** The options of the export that filter prospects, for example `date-from` for the filter `dateFrom` of the list of prospects. */
const filters = Object.keys(NewExport.shape)
  .filter((name) => name !== "bom" && name !== "columns")
  .map((name) => name.replace(/[A-Z]/g, "-$&").toLowerCase());
const filterOf = (option: string): string => option.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());

export const usage = `npm run csv -- import FILE [options]
    imports a CSV file by a job of the service
npm run csv -- export FILE [options]
    saves the prospects that match the filters as a CSV file
  both:
    --base URL       the service, without /api (default: the local service)
    --token TOKEN    an access token; prefer the environment variable TOKEN
    --as EMAIL       the local service issues a token for this user
  import:
    --dry-run        only checks the file
    --mapping "HEADER=COLUMN"         reads cells below HEADER as COLUMN; "HEADER=" ignores them; may be repeated
    --match-by KEY --on-match ACTION  matches rows with prospects by id, sourceId or emailAddress, then update, skip or create
    --errors FILE    saves the errors of skipped rows as CSV
    --again          imports a file again that was imported within a day
    The columns of a file, in any order: ${importColumns.join(", ")}.
  export:
    --all-columns    adds ${knownColumns.slice(exportColumns.length).join(", ")}
    --bom            begins the file with a byte order mark, by which Excel recognises UTF-8
  export, with the filters of the list; write --bbox=-105,39.7,-104.9,39.8 with the equals sign:
    --${filters.join(" --")}
exit code 0: done, 1: rows were skipped, or failed, and the same command would fail again, 2: wrong usage,
3: interrupted, or the service does not answer; the same command resumes`;

const flag = z._default(z.boolean(), false);
const Access = z.object({
  base: z.optional(HttpUrl),
  token: z.optional(z.string()),
  as: z.optional(z.string().check(z.regex(/^\S+@\S+$/, must("an e-mail address")))),
});
const Import = z.extend(Access, {
  "dry-run": flag,
  mapping: z._default(z.array(z.string()), []),
  "match-by": z.optional(z.enum(MatchBy.options, must("id, sourceId or emailAddress"))),
  "on-match": z.optional(z.enum(OnMatch.options, must("update, skip or create"))),
  errors: z.optional(z.string()),
  again: flag,
});
const Export = z.extend(Access, { "all-columns": flag, bom: flag });
const ofExport = optionsIn({ ...Export.shape, ...Object.fromEntries(filters.map((name) => [name, z.string()])) });

export type Options = ReturnType<typeof readOptions>;
export type ImportOptions = Extract<Options, { command: "import" }>;
export type ExportOptions = Extract<Options, { command: "export" }>;

const wrong = (why: string): WrongUsage => new WrongUsage(`${why}: see npm run csv -- --help`);

export function readOptions([command, ...args]: readonly string[], env: NodeJS.ProcessEnv) {
  if (command === "export") {
    const { values, positionals } = argumentsOf(ofExport, usage, args);
    const { "all-columns": all, bom, ...access } = checked(Export, values, usage);
    const chosen: Record<string, string> = {};
    for (const option of filters) {
      const value = values[option];
      if (typeof value === "string") chosen[filterOf(option)] = value;
    }
    const filter = { ...chosen, ...(all && { columns: "all" as const }), ...(bom && { bom }) };
    return { command: "export" as const, ...accessOf(access, positionals, env), filter };
  }
  // Show only the command, because the other arguments may contain an access token.
  if (command !== "import") throw unknownCommand(command ?? "", usage);
  const { values, positionals } = argumentsOf(optionsIn(Import.shape), usage, args);
  const input = checked(Import, values, usage);
  const { "match-by": matchBy, "on-match": onMatch, errors, again, "dry-run": dryRun } = input;
  if ((matchBy === undefined) !== (onMatch === undefined)) throw wrong("--match-by and --on-match belong together");
  const pairs = input.mapping.map(pairOf).toSorted(([one], [other]) => (one < other ? -1 : 1));
  /** The options that change how the service reads the file. They do not depend on the order of `--mapping`. */
  const reading = { mapping: Object.fromEntries(pairs), ...(matchBy && onMatch && { matchBy, onMatch }) };
  return { command: "import" as const, ...accessOf(input, positionals, env), errors, again, dryRun, reading };
}

function accessOf(given: z.output<typeof Access>, [file, ...more]: readonly string[], env: NodeJS.ProcessEnv) {
  if (file === undefined || more.length > 0) throw wrong("name one FILE, and put a name with blanks in quotes");
  const { base = serviceUrl(env), as: email, token: own } = given;
  // `--as` names a user of the local service, for whom it issues a token, so TOKEN is ignored.
  const token = own ?? (email === undefined ? env.TOKEN : undefined);
  if (!token && email === undefined) {
    throw wrong("set the variable TOKEN or --token to an access token, or name a user of the local service by --as");
  }
  return { base: base.replace(/\/+$/, ""), token, email, file };
}

/** The last `=` separates the header from the column, because a header may contain `=`. */
function pairOf(pair: string): [string, Column | null] {
  const [, header, name = ""] = /^(.+)=([^=]*)$/s.exec(pair) ?? [];
  if (header === undefined) throw wrong(`--mapping: write "HEADER=COLUMN" and not "${pair}"`);
  if (header === UNMAPPABLE) throw wrong(`--mapping: the header ${UNMAPPABLE} cannot be mapped`);
  const column = columnNamed(name);
  if (column !== undefined || name.trim() === "") return [header, column ?? null];
  throw wrong(`--mapping: there is no column ${name}. The columns are ${knownColumns.join(", ")}`);
}
