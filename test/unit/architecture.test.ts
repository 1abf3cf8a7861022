/** The house rules that a machine can see: which way imports go, what a file begins with, names that say nothing. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => join(folder, file));
}

/** Paths from the root that a file imports, packages left out. */
function imports(file: string): string[] {
  const specifiers = [...read(file).matchAll(/(?:from|import\()\s*"([^"]+)"/g)].map((match) => match[1] ?? "");
  return specifiers.flatMap((name) => {
    if (name.startsWith("#shared/")) return [name.slice(1)];
    return name.startsWith(".") ? [relative(root, join(root, dirname(file), name))] : [];
  });
}

const read = (file: string): string => readFileSync(join(root, file), "utf8");
const all = ["infra", "functions", "shared"].flatMap(sources);

/** Folder -> folders it must not import from. */
const forbidden: Record<string, readonly string[]> = {
  shared: ["infra/", "functions/", "test/"],
  functions: ["infra/", "test/"],
  infra: ["test/"],
  "shared/db": [
    "shared/http/",
    "shared/auth/",
    "shared/prospects/",
    "shared/webhooks/",
    "shared/deliveries/",
    "shared/events/",
  ],
};

test.each(Object.entries(forbidden))("%s imports nothing from above it", (folder, above) => {
  const wrong = all
    .filter((file) => file.startsWith(`${folder}/`))
    .flatMap((file) => imports(file).map((target) => `${file} -> ${target}`))
    .filter((arrow) => above.some((place) => arrow.includes(`-> ${place}`)));
  expect(wrong).toEqual([]);
});

test("functions reach the table through a domain, never by themselves", () => {
  const wrong = sources("functions").filter((file) => imports(file).some((target) => target.startsWith("shared/db/")));
  expect(wrong).toEqual([]);
});

test("every file begins with a sentence on its purpose", () => {
  expect(all.filter((file) => !/^(?:#!.*\n)?\/\*\*/.test(read(file)))).toEqual([]);
});

test("no file has a name that says nothing", () => {
  const empty = /^(?:utils?|helpers?|common|types|index|misc)\.ts$/;
  expect(all.filter((file) => empty.test(basename(file)))).toEqual([]);
});

test("nothing connects, reads the environment or waits while a function is imported", () => {
  const wrong = sources("functions").filter((file) => /process\.env|await import|new \w+Client/.test(read(file)));
  expect(wrong).toEqual([]);
});

/** A longer file says why in its first comment. */
test("files have at most 250 lines", () => {
  const long = all.filter((file) => read(file).split("\n").length > 251);
  expect(long).toEqual([]);
});
