/**
 * Tests that the CSV command imports 100 000 prospects into a local service that `npm start` has started, and exports them again unchanged.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect, test } from "vitest";
import { csv } from "../../harness/csv-command.ts";

const ROWS = 100_000;
const MINUTES = 60_000;

const root = join(import.meta.dirname, "../../..");
const folder = mkdtempSync(join(tmpdir(), "canvassing-csv-"));
let service: ChildProcess | undefined;
afterAll(async () => {
  if (service !== undefined && service.exitCode === null) {
    service.kill("SIGTERM");
    await once(service, "exit");
  }
  rmSync(folder, { recursive: true, force: true });
});

async function npmStart(): Promise<string> {
  service = spawn("npm", ["start", "--silent", "--", "--fresh"], {
    cwd: root,
    env: { ...process.env, PORT: "0", DATA_DIR: join(folder, "data") },
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (service.stdout === null) throw new Error("npm start has no output");
  for await (const line of createInterface(service.stdout)) {
    const url = /^ready (\S+)$/.exec(line)?.[1];
    if (url !== undefined) {
      service.stdout.resume();
      return url;
    }
  }
  throw new Error("npm start has ended");
}

const HEADER =
  "id,name,phone,email,lat,lng,address1,address2,city,state,zip,status,assignedTo,assignedToEmail,tags,notes,createdBy,source,createdAt";
const quoted = (cell: string): string => `"${cell.replaceAll('"', '""')}"`;

/** Returns a line as an export writes it, but without the values for id, author and time, which an import ignores. */
function lineAt(at: number): string {
  const place = [(39 + (at + 1) / 1e6).toFixed(6), (-105 - (at + 1) / 1e6).toFixed(6)].map(Number);
  const home = at % 3 === 0 ? [`${at} Main St`, "Apt 2", "Denver", "CO", "80202"] : ["", "", "", "", ""];
  return [
    "",
    at % 2 === 0 ? `Zoë Brown ${at}` : quoted(`Brown, "Zoë" ${at} 🏠`),
    `+1 303 555 ${String(at).padStart(6, "0")}`,
    `zoe${at}@example.com`,
    ...place,
    ...home,
    ["New", "Go Back", ""][at % 3],
    ...(at % 5 === 0 ? ["Rita Rep", "rep@acme.test"] : ["", ""]),
    at % 7 === 0 ? "Referral" : "",
    at % 4 === 0 ? quoted(`'=SUM(A1)\nsecond "line" of ${at}`) : "",
    "",
    at % 6 === 0 ? "door" : "",
    "",
  ].join(",");
}

const sortedLines = (lines: readonly string[]): Buffer => Buffer.from(lines.toSorted().join("\r\n"));

test("100 000 rows are imported and exported once and unchanged", { timeout: 60 * MINUTES }, async () => {
  const base = await npmStart();
  const sent = Array.from({ length: ROWS }, (_, at) => lineAt(at));
  const [file, before, after] = [
    join(folder, "in.csv"),
    join(folder, "before.csv"),
    join(folder, "after.csv"),
  ] as const;
  writeFileSync(file, `${[HEADER, ...sent].join("\r\n")}\r\n`);
  const as = ["--base", base, "--as", "owner@acme.test"] as const;
  expect(await csv("export", before, ...as)).toMatchObject({ code: 0 });
  const moved = await csv("import", file, ...as);
  expect(moved, moved.stderr).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("100,000 imported, 0 skipped"),
  });
  const again = await csv("import", file, ...as);
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("imported before") });
  const out = await csv("export", after, ...as);
  expect(out, out.stderr).toMatchObject({ code: 0 });
  const known = new Set(readFileSync(before, "utf8").split("\r\n"));
  const lines = readFileSync(after, "utf8")
    .split("\r\n")
    .filter((line) => !known.has(line));
  const came = lines.map((line) => line.replace(/^\d+,/, ",").replace(/,Olivia Owner,([^,]*),[^,]+$/, ",,$1,"));
  expect(came).toHaveLength(ROWS);
  const all = new Set(sent);
  expect(came.filter((line) => !all.has(line)).slice(0, 3)).toEqual([]);
  expect(sortedLines(came).equals(sortedLines(sent))).toBe(true);
});
