/**
 * Prints 40 comments and 10 paragraphs, drawn at random, with the lines around them. The lines of a drawn text begin with `>`. A reader who
 * does not know the project says which of them are clear at first reading.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../infra/build/bundle.ts";
import { optionsOrExit } from "../infra/cli/command/options.ts";

const COMMENTS = 40;
const PARAGRAPHS = 10;
const AROUND = { before: 6, after: 12 } as const;
const FEWEST_WORDS = 5;

const usage = `npm run draw -- [options]
    --seed N   draws the same texts as another run with this number (default: a random number, which is printed)
exit code 0: success, 2: wrong usage`;

const { seed = String(Math.floor(Math.random() * 1e9)) } = optionsOrExit({ seed: { type: "string" } }, usage);

const files = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" }).trim().split("\n");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const wordsOf = (text: string): number => text.split(/\s+/).filter((word) => /^\w/.test(word)).length;

/** Matches a block comment, or consecutive line comments, which together are one text. */
const COMMENT = /^[ \t]*(?:\/\*\*.*?\*\/|\/\/[^\n]*(?:\n[ \t]*\/\/[^\n]*)*)[ \t]*\n/gms;

/** Finds the comments or paragraphs in a file. In `marked`, those parts of the file that must not match the pattern are empty lines. */
function textsOf(file: string, pattern: RegExp, marked = read(file)) {
  const lines = read(file).split("\n");
  return [...marked.matchAll(pattern)].map(({ 0: found, index }) => {
    const first = marked.slice(0, index).split("\n").length;
    const end = first - 1 + found.trimEnd().split("\n").length;
    const shown = lines.slice(Math.max(0, first - 1 - AROUND.before), end + AROUND.after).map((line, i) => {
      const at = Math.max(1, first - AROUND.before) + i;
      return `${at >= first && at <= end ? ">" : " "} ${line}`;
    });
    return { place: `${file}:${first}`, text: found, shown: shown.join("\n") };
  });
}

type Text = ReturnType<typeof textsOf>[number];

/** Paragraphs of a document, without headings, tables, lists of links and code. */
const paragraphsOf = (file: string) =>
  textsOf(
    file,
    /(?:^(?!#|\||\s*$).*\n?)+/gm,
    read(file).replace(/^```.*?^```$/gms, (block) => block.replace(/[^\n]/g, "")),
  );

/** Returns `count` of the texts. The same seed returns the same texts, as long as the files stay the same. */
function draw(texts: readonly Text[], count: number): Text[] {
  const rank = ({ place, text }: Text): string => createHash("sha256").update(`${seed} ${place} ${text}`).digest("hex");
  const ranked = texts.filter(({ text }) => wordsOf(text) >= FEWEST_WORDS).map((text) => [rank(text), text] as const);
  return ranked
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, text]) => text)
    .slice(0, count);
}

// The file api.ts is left out, because its types are generated from the OpenAPI document and nobody writes its comments.
const code = files.filter((file) => /\.tsx?$/.test(file) && file !== "docs/client/api.ts");
const documents = files.filter((file) => file.endsWith(".md") && file !== "CHANGELOG.md");
const comments = code.flatMap((file) => textsOf(file, COMMENT));
const drawn = [...draw(comments, COMMENTS), ...draw(documents.flatMap(paragraphsOf), PARAGRAPHS)];
console.log(`seed ${seed}`);
for (const [i, { place, shown }] of drawn.entries()) console.log(`\n--- ${i + 1}: ${place}\n${shown}`);
