/** Writes the tables of docs/settings.md (`npm run settings`). With `--check`, it fails if they are out of date. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { root } from "../build/bundle.ts";
import { exitCodes, optionsOf, runCommand } from "../command/options.ts";
import { Context } from "./context.ts";
import { type SettingTexts, settingTexts, topics } from "./setting-texts.ts";

const DOCUMENT = "docs/settings.md";
/** The tables are between these two lines of the document. */
const BEGIN = "<!-- `npm run settings` writes these tables from infra/settings/context.ts -->";
const END = "<!-- end of the tables of settings -->";

interface Setting extends SettingTexts {
  readonly key: string;
  readonly default: string;
}

const settings = (): Setting[] =>
  Object.entries(Context.shape).map(([key, schema]) => {
    const texts = settingTexts.get(schema);
    if (texts === undefined) throw new Error(`the setting ${key} has no texts: register them at its schema`);
    return { key, ...texts, default: texts.default ?? defaultOf(key, schema) };
  });

function defaultOf(key: string, schema: z.ZodMiniType): string {
  const { success, data } = z.safeParse(schema, undefined);
  if (!success || data === undefined) throw new Error(`the setting ${key} has no default value: its texts must say it`);
  if (Array.isArray(data)) return data.length === 0 ? "none" : data.join(",");
  return typeof data === "string" ? `\`${data}\`` : String(data);
}

function settingTables(): string {
  const all = settings();
  const parts = topics.map((topic) => {
    const rows = all
      .filter((setting) => setting.topic === topic)
      .map(({ key, description, default: value, effect, cost }) => row(`\`${key}\``, description, value, effect, cost));
    return [
      `### ${topic}`,
      "",
      row("key", "value", "default", "effect", "cost"),
      "|---|---|---|---|---|",
      ...rows,
    ].join("\n");
  });
  return parts.join("\n\n");
}

const row = (...cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;

function withTables(document: string): string {
  const [before, after, ...more] = document.split(`${BEGIN}\n`);
  const rest = after?.split(`${END}\n`);
  if (before === undefined || rest?.length !== 2 || more.length > 0) {
    throw new Error(`${DOCUMENT} must have the two lines around the tables of settings once: ${BEGIN} and ${END}`);
  }
  return `${before}${BEGIN}\n\n${settingTables()}\n\n${END}\n${rest[1]}`;
}

const usage = `npm run settings -- [options]
    --check   writes nothing, and fails if the committed tables are out of date
exit code 0: success, 1: the check has failed, 2: wrong usage`;

export async function main(args: readonly string[]): Promise<number> {
  const options = optionsOf(args, { check: { type: "boolean" } }, usage);
  const file = join(root, DOCUMENT);
  const committed = readFileSync(file, "utf8");
  const generated = withTables(committed);
  if (options.check !== true) writeFileSync(file, generated);
  else if (committed !== generated) {
    console.error(`${DOCUMENT} has stale tables of settings; run \`npm run settings\``);
    return exitCodes.failed;
  }
  return exitCodes.done;
}

if (import.meta.main) await runCommand(() => main(process.argv.slice(2)));
