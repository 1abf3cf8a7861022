/** Tests the built console. The files that every page loads must be small, and only pages that show a map may load the map. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { extname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { beforeAll, expect, test } from "vitest";
import { buildConsole, consoleDirectory } from "../../infra/build/console.ts";
import { onceInRun } from "../harness/once.ts";
import { present } from "../harness/shapes.ts";

/** Maximum kilobytes, compressed, that a browser may load before it shows the first page. */
const SHELL_KB = 110;

beforeAll(() => onceInRun("console", buildConsole));

const read = (file: string): string => readFileSync(join(consoleDirectory, file), "utf8");

/** Returns the names of the HTML page and of the files that it loads at once. */
function shell(): string[] {
  return [
    "index.html",
    ...[...read("index.html").matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map(([, name = ""]) => name),
  ];
}

test("a build removes the directories of builds whose process was killed, and no others", async () => {
  const { pid: ended = 0 } = spawnSync(process.execPath, ["--version"]);
  const [left, old, running] = [`${ended}`, `${ended}-old`, `${process.pid}`].map(
    (end) => `${consoleDirectory}-${end}`,
  );
  const made = [left, old, running].map(present);
  for (const directory of made) mkdirSync(directory, { recursive: true });
  try {
    await buildConsole();
    expect(made.map((directory) => existsSync(directory))).toEqual([false, false, true]);
  } finally {
    for (const directory of made) rmSync(directory, { recursive: true, force: true });
  }
});

test(`the shell has at most ${SHELL_KB} KB`, () => {
  // The bundler decides how many scripts there are and what they are called, so only the types of the files are compared.
  expect(new Set(shell().map((file) => extname(file)))).toEqual(new Set([".html", ".svg", ".js", ".css"]));
  const bytes = shell().reduce((sum, file) => sum + gzipSync(read(file)).length, 0);
  expect(bytes / 1000).toBeLessThan(SHELL_KB);
});

test("the shell contains neither the map nor the table", () => {
  const text = shell().map(read).join();
  expect(text).toContain("useSyncExternalStore");
  expect(text).not.toMatch(/maplibregl-canvas|terra-draw|getSortedRowModel|sortedRowModel/);
});

test("the page has no inline script, and its files have names that change with their content", () => {
  expect(read("index.html")).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=/);
  const names = readdirSync(join(consoleDirectory, "assets"));
  expect(names.filter((name) => !/-[\w-]{8}\.(?:js|css|svg|json)$/.test(name))).toEqual([]);
});
