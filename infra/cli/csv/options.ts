/** Reads the command-line options of the CSV command. */
import { type ParseArgsConfig, parseArgs } from "node:util";
import * as z from "zod/mini";
import { MappingText } from "#shared/prospects/csv/header.ts";
import { serviceUrl } from "../../local/address.ts";
import { Failed, messageOf } from "./fault.ts";

const usage = `npm run csv -- import FILE [options]
npm run csv -- export FILE [options]
    --base URL       the service, without /api (default: the local service)
    --token TOKEN    an access token; prefer the environment variable TOKEN
    --as EMAIL       the local service issues a token for this user
  import, with a journal in FILE.imports.json:
    --dry-run        only checks the file
    --mapping JSON   {"header of the file": "column", "another": null}: null ignores a column
    --errors FILE    saves the errors of skipped rows as CSV
    --again          imports a file again that was imported before
  export, with the filters of the list; write --bbox=-105,39.7,-104.9,39.8 with the equals sign:
    --bbox --date-from --date-to --status --assigned-to-user-id --rep --tag-id --city --search
exit code 0: done, 1: rows were skipped, 2: failed, 3: interrupted; the same command resumes`;

const filters = ["bbox", "dateFrom", "dateTo", "status", "assignedToUserId", "rep", "tagId", "city", "search"] as const;
const Filter = z.partialRecord(z.enum(filters), z.string());
const flagOf = (filter: string): string => filter.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

const string = { type: "string" } as const;
const flag = { type: "boolean", default: false } as const;
const common = { base: string, token: string, as: string } as const;
const ofImport = { ...common, "dry-run": flag, mapping: string, errors: string, again: flag } as const;
const filterOptions: ParseArgsConfig["options"] = Object.fromEntries(filters.map((name) => [flagOf(name), string]));

export type ImportOptions = ReturnType<typeof importOptions>;
export type ExportOptions = ReturnType<typeof exportOptions>;

export function readOptions([command, ...args]: readonly string[], env: NodeJS.ProcessEnv) {
  try {
    if (command === "import") return importOptions(args, env);
    if (command === "export") return exportOptions(args, env);
  } catch (error) {
    throw new Failed(`${messageOf(error)}\nusage: ${usage}`);
  }
  throw new Failed(`usage: ${usage}`);
}

function importOptions(args: string[], env: NodeJS.ProcessEnv) {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: ofImport });
  const { "dry-run": dryRun, errors, again } = values;
  const mapping = values.mapping === undefined ? undefined : mappingOf(values.mapping);
  return { command: "import" as const, ...commonOf(values, positionals, env), dryRun, mapping, errors, again };
}

function exportOptions(args: string[], env: NodeJS.ProcessEnv) {
  const options = { ...common, ...filterOptions };
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
  const given = new Map(Object.entries(values));
  const filter = Filter.parse(
    Object.fromEntries(filters.flatMap((name) => (given.has(flagOf(name)) ? [[name, given.get(flagOf(name))]] : []))),
  );
  return { command: "export" as const, ...commonOf(values, positionals, env), filter };
}

type CommonValues = Readonly<Partial<Record<keyof typeof common, string | undefined>>>;

function commonOf(values: CommonValues, [file, ...more]: readonly string[], env: NodeJS.ProcessEnv) {
  if (file === undefined || more.length > 0) throw new Error("name one FILE");
  const base = (values.base ?? serviceUrl(env)).replace(/\/+$/, "");
  if (!/^https?:/.test(base) || !URL.canParse(base)) throw new Error("--base must be an http or https URL");
  // `--as` names a user of the local service, so the environment's token is not used.
  const token = values.token ?? (values.as === undefined ? env.TOKEN : undefined);
  if (token === undefined && values.as === undefined) {
    throw new Error(
      "set the variable TOKEN or --token to an access token, or name a user of the local service by --as",
    );
  }
  return { base, token, email: values.as, file };
}

function mappingOf(value: string): z.infer<typeof MappingText> {
  const { success, data, error } = z.safeParse(MappingText, value);
  if (success) return data;
  throw new Error(`--mapping: ${error.issues.map(({ path, message }) => [...path, message].join(" ")).join("; ")}`);
}
