/** Tests the built console: what every page loads is small, and the map is loaded only by pages that show one. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { beforeAll, expect, test } from "vitest";
import { buildConsole, consoleDirectory } from "../../infra/build/console.ts";

/** Kilobytes that a browser loads before it shows the first page, compressed. */
const SHELL_KB = 110;

beforeAll(buildConsole);

const read = (file: string): string => readFileSync(join(consoleDirectory, file), "utf8");

/** The page and the files that it names. The other files are loaded by pages that need them. */
function shell(): string[] {
  return [
    "index.html",
    ...[...read("index.html").matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map(([, name = ""]) => name),
  ];
}

test(`the shell has at most ${SHELL_KB} KB`, () => {
  expect(shell()).toHaveLength(4);
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
