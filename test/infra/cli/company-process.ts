/** Runs `npm run company` in a separate process, on the service of the tests. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { baseUrl } from "../../harness/client.ts";

export function run(...args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const { hostname: HOST, port: PORT } = new URL(baseUrl());
  const file = join(import.meta.dirname, "../../../infra/cli/company.ts");
  return new Promise((resolve) => {
    execFile(process.execPath, [file, ...args], { env: { ...process.env, HOST, PORT } }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
  });
}
