/** Gives the tests of the CSV commands a company, a folder for files, and a faulty connection to the service. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { baseUrl } from "../../harness/client.ts";
import { csv, startCsv } from "../../harness/csv-command.ts";
import { startFaultyProxy } from "../../harness/faulty-proxy.ts";
import { newTeam } from "../../harness/team.ts";

/** `run` and `start` run the command `name` as this user of the company. */
export async function csvStage(name: "export" | "import", user: "owner" | "importer") {
  const as = await newTeam();
  const proxy = await startFaultyProxy(baseUrl());
  const folder = mkdtempSync(join(tmpdir(), "canvassing-csv-"));
  afterAll(() => proxy.stop());

  const access = ["--base", proxy.url, "--as", as[user].email];
  const args = (file: string, ...more: readonly string[]) => [file, ...access, ...more];
  const run = (file: string, ...more: readonly string[]) => csv(name, ...args(file, ...more));
  const start = (file: string, ...more: readonly string[]) => startCsv(name, ...args(file, ...more));

  return { as, proxy, folder, args, run, start };
}
