/** Writes the committed files that a command generates. With `--check`, only compares them, and fails if one is out of date. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { exitCodes, optionsOf } from "../cli/command/options.ts";
import { root } from "./bundle.ts";

export interface Generated {
  readonly file: string;
  readonly text: string;
}

interface Generator {
  readonly command: string;
  readonly generate: () => Promise<readonly Generated[]>;
  /** Returns further reasons for which `--check` fails, for example a change that breaks clients of the API. */
  readonly faults?: () => Promise<readonly string[]>;
}

export async function writeGenerated(
  args: readonly string[],
  { command, generate, faults }: Generator,
): Promise<number> {
  const usage = `${command} -- [options]
    --check   writes nothing, and fails if a committed file is out of date
exit code 0: success, 1: the check has failed, 2: wrong usage`;
  const { check = false } = optionsOf(args, { check: { type: "boolean" } }, usage);
  const files = await generate();
  if (!check) {
    for (const { file, text } of files) {
      mkdirSync(dirname(resolve(root, file)), { recursive: true });
      writeFileSync(resolve(root, file), text);
    }
    return exitCodes.done;
  }
  const found = [...files.flatMap((one) => staleness(one, command)), ...((await faults?.()) ?? [])];
  for (const fault of found) console.error(fault);
  return found.length === 0 ? exitCodes.done : exitCodes.failed;
}

function staleness({ file, text }: Generated, command: string): string[] {
  const path = resolve(root, file);
  const committed = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (committed === text) return [];
  const [before, after] = [committed.split("\n"), text.split("\n")];
  const line = after.findIndex((one, i) => one !== before[i]);
  return [
    `${relative(root, path)} is out of date; run \`${command}\`. Line ${line + 1} becomes: ${after[line]?.trim()}`,
  ];
}

/** Replaces the generated parts of a document. A comment with the part's name is before each part, and the comment `end` after it. */
export function filled(file: string, parts: Readonly<Record<string, string>>): Generated {
  let text = readFileSync(resolve(root, file), "utf8");
  for (const [name, part] of Object.entries(parts)) {
    const present = new RegExp(`(?<=<!-- generated: ${name} -->\n).*?(?=<!-- end -->\n)`, "s");
    if (!present.test(text)) throw new Error(`${file} has no part ${name}`);
    text = text.replace(present, () => `\n${part}\n\n`);
  }
  return { file, text };
}

export const table = (head: readonly string[], rows: readonly string[]): string =>
  [row(...head), `|${"---|".repeat(head.length)}`, ...rows].join("\n");

export const row = (...cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
