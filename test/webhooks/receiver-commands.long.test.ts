/** Tests the commands in docs/receivers with several versions of Node.js. They must work as written while `npm start` runs. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";
import { freePort } from "../../infra/local/engines/dynamodb.ts";
import { present } from "../harness/shapes.ts";

const guide = readFileSync(join(root, "docs/receivers/README.md"), "utf8");
const [receive = "", use = ""] = [...guide.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code = ""]) => code);

/** The PATH of a new terminal. It contains no `node_modules` folder, which npm adds for this test run. */
const PATH = (process.env.PATH ?? "")
  .split(":")
  .filter((folder) => !folder.includes("node_modules"))
  .join(":");

/** Returns a PATH that begins with the folder of this version of Node.js, or undefined if the npm registry cannot be reached. */
function pathWith(version: string): string | undefined {
  const command = ["exec", "--yes", `--package=node@${version}`, "--", "sh", "-c", "command -v node"];
  const { status, stdout } = spawnSync("npm", command, {
    cwd: tmpdir(),
    encoding: "utf8",
    env: { ...process.env, PATH },
  });
  return status === 0 ? `${dirname(stdout.trim())}:${PATH}` : undefined;
}

interface Running {
  readonly lines: readonly string[];
  readonly ended: Promise<unknown>;
  hasEnded(): boolean;
}

/** Runs a shell command in a process group, which the test can end with all child processes. */
function run(command: string, env: Record<string, string>): Running {
  const { HOME = "", TMPDIR = "" } = process.env;
  const child = spawn("sh", ["-euc", command], {
    cwd: root,
    env: { HOME, TMPDIR, PATH, ...env },
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const lines: string[] = [];
  createInterface(child.stdout).on("line", (line) => lines.push(line));
  const ended = once(child, "close");
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  onTestFinished(async () => {
    if (child.pid !== undefined && !hasEnded()) process.kill(-child.pid, "SIGTERM");
    await ended;
  });
  return { lines, ended, hasEnded };
}

async function untilLine({ lines, hasEnded }: Running, pattern: RegExp): Promise<RegExpExecArray> {
  for (;;) {
    const match = lines.map((line) => pattern.exec(line)).find((found) => found !== null);
    if (match !== undefined && match !== null) return match;
    if (hasEnded()) return expect.fail(`the command ended without ${pattern}: ${lines.join("\n")}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** On a busy machine, the start of the service can take minutes. */
const TIMEOUT_MS = 300_000;

test.for(["the installed version", "20", "22"])(
  "the commands work with Node.js: %s",
  { timeout: TIMEOUT_MS },
  async (version, { skip }) => {
    const path = /^\d/.test(version) ? pathWith(version) : PATH;
    if (path === undefined) return skip("the npm registry cannot be reached");
    const major = spawnSync("node", ["--version"], { encoding: "utf8", env: { PATH: path } }).stdout;
    if (/^\d/.test(version)) expect(major).toMatch(new RegExp(`^v${version}\\.`));

    const service = run("npm start -- --memory", { PATH: path, PORT: "0" });
    const [, url = ""] = await untilLine(service, /^ready (\S+)$/);
    const receiverPort = String(await freePort());
    const inbox = mkdtempSync(join(tmpdir(), "canvassing-inbox-"));
    onTestFinished(() => rmSync(inbox, { recursive: true, force: true }));
    // Another program may use port 8080.
    const here = (command: string): string => command.replaceAll("8080", receiverPort);
    const receiver = run(here(receive), { PATH: path, INBOX: inbox });
    await untilLine(receiver, /^listening on /);
    const user = run(here(use), { PATH: path, PORT: new URL(url).port });
    const [, delivery] = await untilLine(receiver, /^(dlv_\w+) prospect\.created$/);
    await user.ended;
    expect(user.lines.join("")).toContain('"name":"Ada"');
    expect(readdirSync(inbox)).toEqual([`${present(delivery)}.json`]);
  },
);
