/** What the command is told. */
import { parseArgs } from "node:util";
import * as z from "zod/mini";
import { MappingText } from "#shared/prospects/csv/format.ts";
import { serviceUrl } from "../../local/address.ts";
import { messageOf, WrongUsage } from "./fault.ts";

export const usage = `npm run csv -- import FILE [options]
npm run csv -- export FILE [options]
    --base URL       where the service is, without /api (default: the local service)
    --token TOKEN    an access token; better in the environment variable TOKEN
    --as EMAIL       the local service makes a token for this user
  import, remembered in FILE.imports.json:
    --dry-run        the file is only checked
    --mapping JSON   {"header of the file": "column", "another": null}: null leaves a column alone
    --errors FILE    saves why rows were skipped, as CSV
    --again          imports a file that was imported before
  export, filters as in the list; write --bbox=-105,39.7,-104.9,39.8 with its equals sign:
    --bbox --date-from --date-to --status --assigned-to-user-id --rep --tag-id --city --search
    --stream, --job  one answer for all, or a file that the service makes first (default: by the number of prospects)
exit code 0: all done, 1: rows were skipped, 2: failed, 3: cut off, and the same command goes on`;

/** Option -> parameter of the interface. */
const filters = {
  bbox: "bbox",
  "date-from": "dateFrom",
  "date-to": "dateTo",
  status: "status",
  "assigned-to-user-id": "assignedToUserId",
  rep: "rep",
  "tag-id": "tagId",
  city: "city",
  search: "search",
} as const;

type Filter = (typeof filters)[keyof typeof filters];

interface Common {
  /** Without a slash at the end. */
  readonly base: string;
  readonly token: string | undefined;
  readonly email: string | undefined;
  readonly file: string;
}

export interface ImportOptions extends Common {
  readonly command: "import";
  readonly dryRun: boolean;
  readonly mapping: z.infer<typeof MappingText> | undefined;
  readonly errors: string | undefined;
  readonly again: boolean;
}

export interface ExportOptions extends Common {
  readonly command: "export";
  readonly filter: Readonly<Partial<Record<Filter, string>>>;
  /** Undefined: whichever fits. */
  readonly way: "stream" | "job" | undefined;
}

const text = { type: "string" } as const;
const flag = { type: "boolean", default: false } as const;
const common = { base: text, token: text, as: text } as const;

/** Throws WrongUsage. */
export function readOptions(args: readonly string[], env: NodeJS.ProcessEnv): ImportOptions | ExportOptions {
  const [command, ...rest] = args;
  try {
    if (command === "import") return importOptions(rest, env);
    if (command === "export") return exportOptions(rest, env);
  } catch (error) {
    throw new WrongUsage(`${messageOf(error)}\nusage: ${usage}`);
  }
  throw new WrongUsage(`usage: ${usage}`);
}

function importOptions(args: string[], env: NodeJS.ProcessEnv): ImportOptions {
  const own = { "dry-run": flag, mapping: text, errors: text, again: flag } as const;
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: { ...common, ...own } });
  return {
    command: "import",
    ...commonOf(values, positionals, env),
    dryRun: values["dry-run"],
    mapping: values.mapping === undefined ? undefined : mappingOf(values.mapping),
    errors: values.errors,
    again: values.again,
  };
}

function exportOptions(args: string[], env: NodeJS.ProcessEnv): ExportOptions {
  const names = Object.keys(filters).map((name) => [name, text] as const);
  const options = { ...common, stream: flag, job: flag, ...Object.fromEntries(names) } as const;
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
  if (values.stream && values.job) throw new WrongUsage("--stream and --job exclude each other");
  const given = z.record(z.string(), z.unknown()).parse(values);
  const filter = Object.entries(filters).flatMap(([name, parameter]) => {
    const value = given[name];
    return typeof value === "string" ? [[parameter, value] as const] : [];
  });
  return {
    command: "export",
    ...commonOf(values, positionals, env),
    filter: Object.fromEntries(filter),
    way: values.stream ? "stream" : values.job ? "job" : undefined,
  };
}

interface CommonValues {
  readonly base?: string | undefined;
  readonly token?: string | undefined;
  readonly as?: string | undefined;
}

function commonOf(values: CommonValues, positionals: readonly string[], env: NodeJS.ProcessEnv): Common {
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0) throw new WrongUsage("name one FILE");
  const base = (values.base ?? serviceUrl(env)).replace(/\/+$/, "");
  if (!/^https?:/.test(base) || !URL.canParse(base)) throw new WrongUsage("--base: not a URL");
  // An e-mail address that is given is meant, whatever else stands in the environment.
  const token = values.token ?? (values.as === undefined ? env.TOKEN : undefined);
  if (token === undefined && values.as === undefined) {
    throw new WrongUsage(
      "an access token is needed: the variable TOKEN or --token, or --as EMAIL at the local service",
    );
  }
  return { base, token, email: values.as, file };
}

function mappingOf(value: string): z.infer<typeof MappingText> {
  const { success, data, error } = z.safeParse(MappingText, value);
  if (success) return data;
  throw new WrongUsage(
    `--mapping: ${error.issues.map(({ path, message }) => [...path, message].join(" ")).join("; ")}`,
  );
}
