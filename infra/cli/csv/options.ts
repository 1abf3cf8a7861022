/** Reads the command-line options of the CSV command. */
import * as z from "zod/mini";
import { type Column, importColumns, knownColumns } from "#shared/prospects/csv/format.ts";
import { type Mapping, MappingText, UNMAPPABLE } from "#shared/prospects/csv/header.ts";
import { MatchBy, OnMatch } from "#shared/prospects/csv/key.ts";
import { serviceUrl } from "../../local/address.ts";
import { argumentsOf, texts, WrongUsage } from "../options.ts";

export const usage = `npm run csv -- import FILE [options]
npm run csv -- export FILE [options]
    --base URL       the service, without /api (default: the local service)
    --token TOKEN    an access token; prefer the environment variable TOKEN
    --as EMAIL       the local service issues a token for this user
    --help           prints this text
  import, with a journal in FILE.imports.json:
    --dry-run        only checks the file
    --mapping "HEADER=COLUMN"
                     reads a column of the file with another header; "HEADER=" ignores it; may be repeated
    --match-by KEY --on-match ACTION
                     matches rows with prospects by id, sourceId or emailAddress, then update, skip or create
    --errors FILE    saves the errors of skipped rows as CSV
    --again          imports a file again that was imported before
    The columns of a file, in any order: ${importColumns.join(", ")}.
    GET /api/prospects/import/template.csv is an empty file with these columns. A file may also have the other
    columns of an export: id, which is read with --match-by id, and createdBy and createdAt, which are not read.
  export, with the filters of the list; write --bbox=-105,39.7,-104.9,39.8 with the equals sign:
    --bbox --date-from --date-to --status --assigned-to-user-id --rep --tag-id --city --search
exit code 0: done, 1: rows were skipped, or failed, and the same command would fail again, 2: wrong usage,
3: interrupted, or the service does not answer; the same command resumes`;

const filters = ["bbox", "dateFrom", "dateTo", "status", "assignedToUserId", "rep", "tagId", "city", "search"] as const;
const flagOf = (filter: string): string => filter.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

const string = { type: "string" } as const;
const flag = { type: "boolean", default: false } as const;
const common = { base: string, token: string, as: string } as const;
const ofImport = {
  ...common,
  "dry-run": flag,
  mapping: { type: "string", multiple: true },
  "match-by": string,
  "on-match": string,
  errors: string,
  again: flag,
} as const;

export type ImportOptions = ReturnType<typeof importOptions>;
export type ExportOptions = ReturnType<typeof exportOptions>;

export function readOptions([command, ...args]: readonly string[], env: NodeJS.ProcessEnv) {
  if (command === "import") return importOptions(args, env);
  if (command === "export") return exportOptions(args, env);
  throw new WrongUsage(`usage: ${usage}`);
}

const wrong = (why: string): WrongUsage => new WrongUsage(`${why}: see npm run csv -- --help`);

function importOptions(args: readonly string[], env: NodeJS.ProcessEnv) {
  const { values, positionals } = argumentsOf(ofImport, usage, args);
  const { "dry-run": dryRun, errors, again } = values;
  const mapping = values.mapping === undefined ? undefined : mappingOf(values.mapping);
  const [matchBy, onMatch] = [
    choiceOf("--match-by", MatchBy.options, values["match-by"]),
    choiceOf("--on-match", OnMatch.options, values["on-match"]),
  ];
  if ((matchBy === undefined) !== (onMatch === undefined)) throw wrong("--match-by and --on-match belong together");
  const own = { mapping, matchBy, onMatch, dryRun, errors, again };
  return { command: "import" as const, ...commonOf(values, positionals, env), ...own };
}

function exportOptions(args: readonly string[], env: NodeJS.ProcessEnv) {
  const options = { ...texts(filters.map(flagOf)), ...common };
  const { values, positionals } = argumentsOf(options, usage, args);
  const given = new Map(Object.entries(values));
  const filter: Partial<Record<(typeof filters)[number], string>> = {};
  for (const name of filters) {
    const value = given.get(flagOf(name));
    if (value !== undefined) filter[name] = value;
  }
  return { command: "export" as const, ...commonOf(values, positionals, env), filter };
}

type CommonValues = Readonly<Partial<Record<keyof typeof common, string | undefined>>>;

function commonOf(values: CommonValues, [file, ...more]: readonly string[], env: NodeJS.ProcessEnv) {
  if (file === undefined || more.length > 0) throw wrong("name one FILE, and put a name with blanks in quotes");
  const base = (values.base ?? serviceUrl(env)).replace(/\/+$/, "");
  if (!/^https?:/.test(base) || !URL.canParse(base)) throw wrong("--base must be an http or https URL");
  // `--as` names a user of the local service, which issues a token for this user. So the environment variable TOKEN is ignored with `--as`.
  const token = values.token ?? (values.as === undefined ? env.TOKEN : undefined);
  if (token === undefined && values.as === undefined) {
    throw wrong("set the variable TOKEN or --token to an access token, or name a user of the local service by --as");
  }
  return { base, token, email: values.as, file };
}

/**
 * Reads pairs `HEADER=COLUMN`, or a JSON object. In a pair, the last `=` separates the header from the column, because a header may contain
 * `=`.
 */
function mappingOf(values: readonly string[]): Mapping {
  const mapping: Record<string, Column | null> = {};
  for (const value of values) {
    if (value.trim().startsWith("{")) {
      const { success, data } = z.safeParse(MappingText, value);
      if (!success) throw wrong(`--mapping: ${value} is no JSON object of headers and columns. ${COLUMNS}`);
      Object.assign(mapping, data);
      continue;
    }
    const at = value.lastIndexOf("=");
    if (at < 1) throw wrong(`--mapping: write "HEADER=COLUMN" and not "${value}"`);
    const [header, name] = [value.slice(0, at), value.slice(at + 1).trim()];
    if (header === UNMAPPABLE) throw wrong(`--mapping: the header ${UNMAPPABLE} cannot be mapped`);
    mapping[header] = name === "" ? null : columnOf(name);
  }
  return mapping;
}

const COLUMNS = `The columns are ${knownColumns.join(", ")}.`;

function columnOf(name: string): Column {
  const column = knownColumns.find((known) => known.toLowerCase() === name.toLowerCase());
  if (column === undefined) throw wrong(`--mapping: there is no column ${name}. ${COLUMNS}`);
  return column;
}

function choiceOf<T extends string>(option: string, choices: readonly T[], given: string | undefined): T | undefined {
  const chosen = choices.find((choice) => choice === given);
  if (given !== undefined && chosen === undefined) {
    throw wrong(`${option} must be ${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`);
  }
  return chosen;
}
