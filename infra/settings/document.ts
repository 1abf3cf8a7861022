/** Writes the tables of docs/settings.md (`npm run settings`). */
import * as z from "zod/mini";
import { filled, row, table, writeGenerated } from "../build/generated.ts";
import { runCommand } from "../cli/command/options.ts";
import { topics } from "./context.ts";
import { settingTexts } from "./values.ts";

function rowOf([key, schema]: [string, z.ZodMiniType]): string {
  const texts = settingTexts.get(schema);
  if (texts === undefined) throw new Error(`the setting ${key} has no texts: register them at its schema`);
  const { description, default: preset = defaultOf(key, schema), effect, cost = "none" } = texts;
  return row(`\`${key}\``, description, preset, effect, cost);
}

function defaultOf(key: string, schema: z.ZodMiniType): string {
  const { success, data } = z.safeParse(schema, undefined);
  if (!success || data === undefined) throw new Error(`the setting ${key} has no default value: its texts must say it`);
  if (Array.isArray(data)) return data.length === 0 ? "none" : data.join(",");
  return typeof data === "string" ? `\`${data}\`` : String(data);
}

const settingTables = (): string =>
  Object.entries(topics)
    .map(([topic, settings]) => {
      const head = ["key", "value", "default", "effect", "cost"];
      return `### ${topic}\n\n${table(head, Object.entries(settings).map(rowOf))}`;
    })
    .join("\n\n");

export const main = (args: readonly string[]): Promise<number> =>
  writeGenerated(args, {
    command: "npm run settings",
    generate: async () => [filled("docs/settings.md", { settings: settingTables() })],
  });

if (import.meta.main) await runCommand(() => main(process.argv.slice(2)));
