/** Implements `npm run csv -- import FILE | export FILE` with jobs of a running service, and resumes interrupted transfers. */
import { setTimeout as wait } from "node:timers/promises";
import yoctoSpinner from "yocto-spinner";
import * as z from "zod/mini";
import { NewExport } from "#shared/jobs/export/schema.ts";
import { type Column, exportColumns, importColumns, knownColumns } from "#shared/prospects/csv/format.ts";
import { columnNamed } from "#shared/prospects/csv/header.ts";
import { MatchBy, OnMatch } from "#shared/prospects/match-key.ts";
import { localToken, NoLocalService } from "../local/local-token.ts";
import { serviceUrl } from "../local/servers/address.ts";
import { HttpUrl, must } from "./command/accepted.ts";
import { messageOf } from "./command/error.ts";
import { command, nameTarget, runCommands, WrongUsage } from "./command/options.ts";
import { onSignal } from "./command/signals.ts";
import { exportFile } from "./csv/export.ts";
import { importFile } from "./csv/import.ts";
import { Busy, openService, type Service } from "./csv/service.ts";

/** The filters of an export by the names of their options, for example `dateFrom` by `date-from`. */
const filters = new Map(
  Object.keys(NewExport.shape)
    .filter((name) => name !== "bom" && name !== "columns")
    .map((name) => [name.replace(/[A-Z]/g, "-$&").toLowerCase(), name]),
);

const usage = `npm run csv -- import FILE [options]
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
    --${[...filters.keys()].join(" --")}
exit code 0: done, 1: rows were skipped, or failed, and the same command would fail again, 2: wrong usage,
3: interrupted, or the service does not answer; the same command resumes`;

const flag = z._default(z.boolean(), false);
const Access = z.object({
  base: z.optional(HttpUrl),
  token: z.optional(z.string()),
  as: z.optional(z.string().check(z.regex(/^\S+@\S+$/, must("an e-mail address")))),
});
const Import = z.strictObject({
  ...Access.shape,
  "dry-run": flag,
  mapping: z._default(z.array(z.string()), []),
  "match-by": z.optional(z.enum(MatchBy.options, must("id, sourceId or emailAddress"))),
  "on-match": z.optional(z.enum(OnMatch.options, must("update, skip or create"))),
  errors: z.optional(z.string()),
  again: flag,
});
const Filters = z.object(Object.fromEntries([...filters.keys()].map((option) => [option, z.optional(z.string())])));
const Export = z.strictObject({ ...Filters.shape, ...Access.shape, "all-columns": flag, bom: flag });

const wrong = (why: string): WrongUsage => new WrongUsage(`${why}: see npm run csv -- --help`);

/** Returns the header and the column of a `--mapping`. The last `=` separates them, because a header may contain `=`. */
function pairOf(pair: string): [string, Column | null] {
  const [, header, name = ""] = /^(.+)=([^=]*)$/s.exec(pair) ?? [];
  if (header === undefined) throw wrong(`--mapping: write "HEADER=COLUMN" and not "${pair}"`);
  const column = columnNamed(name);
  if (column !== undefined || name.trim() === "") return [header, column ?? null];
  throw wrong(`--mapping: there is no column ${name}. The columns are ${knownColumns.join(", ")}`);
}

function importWith(input: z.output<typeof Import>, file: string): Promise<number> {
  const { "match-by": matchBy, "on-match": onMatch, errors, again, "dry-run": dryRun } = input;
  if ((matchBy === undefined) !== (onMatch === undefined)) throw wrong("--match-by and --on-match belong together");
  // Sort the pairs, so that a repeated command finds its import again although its `--mapping` options have another order.
  const pairs = input.mapping.map(pairOf).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const reading = { mapping: Object.fromEntries(pairs), ...(matchBy && onMatch && { matchBy, onMatch }) };
  return transfer(input, (service) => importFile(service, { file, errors, again, dryRun, reading }));
}

function exportWith(input: z.output<typeof Export>, file: string): Promise<number> {
  const { "all-columns": all, bom } = input;
  const chosen: Record<string, string> = {};
  for (const [option, value] of Object.entries(Filters.parse(input))) {
    if (value !== undefined) chosen[filters.get(option) ?? option] = value;
  }
  const filter = { ...chosen, ...(all && { columns: "all" as const }), ...(bom && { bom }) };
  return transfer(input, (service) => exportFile(service, file, filter));
}

/** Exit code of a command that resumes the transfer when it is repeated. */
const RESUMABLE = 3;
/** Milliseconds to wait for the second signal, which npm sends after Ctrl-C. While Node.js ends, a signal would replace the exit code. */
const FORWARDED_MS = 1_000;

async function transfer(
  { base: given = serviceUrl(), token: own, as: email }: z.output<typeof Access>,
  work: (service: Service) => Promise<number>,
): Promise<number> {
  const base = given.replace(/\/+$/, "");
  const token = own ?? (email === undefined ? process.env.TOKEN : undefined);
  if (!token && email === undefined) {
    throw wrong("set the variable TOKEN or --token to an access token, or name a user of the local service by --as");
  }
  const interrupt = new AbortController();
  const { signal } = interrupt;
  onSignal(
    () => interrupt.abort(),
    () => process.exit(RESUMABLE),
  );
  nameTarget(`service at ${base}`);
  const spinner = yoctoSpinner({ stream: process.stderr, handleSignals: false });
  try {
    return await work(await openService(base, token ?? (await localToken(base, String(email))), { signal, spinner }));
  } catch (error) {
    spinner.stop();
    const isAway = error instanceof NoLocalService || error instanceof Busy;
    if (!signal.aborted && !isAway) throw error;
    console.error(`${signal.aborted ? "interrupted" : messageOf(error)}: run the same command to resume`);
    if (signal.aborted && process.env.npm_lifecycle_event !== undefined) await wait(FORWARDED_MS);
    return RESUMABLE;
  }
}

await runCommands(usage, { import: command(Import, importWith, "FILE"), export: command(Export, exportWith, "FILE") });
