/**
 * Does what README.md and docs/ tell a newcomer, in a fresh clone. It runs every shell block as written, and compares the output with
 * the answers in the documents. Then it runs the smoke test on the service of the README. It stops at the first difference.
 *
 * The words after the three backticks of a block say what happens with the block:
 * - `sh` runs. If the block prints `ready` or `listening on`, it serves requests. It then keeps running, and the next blocks run in a new
 * terminal.
 * - `sh aws` needs an AWS account and does not run.
 * - `sh slow` does not run in CI.
 * - `ts FILE` is appended to this file of the clone.
 * - `json` is compared with the last line that the block before it has printed. The value `"…"` matches any value. The key `"…"` matches
 * any other fields.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { optionsOrExit } from "../infra/cli/command/options.ts";

const usage = `npm run newcomer
    does in a fresh clone what the documents tell a newcomer, compares the results with the documents, and runs the smoke test
exit code 0: success, 1: a difference or a failed test, 2: wrong usage`;
optionsOrExit({}, usage);

const root = resolve(import.meta.dirname, "..");
const temporary = realpathSync(mkdtempSync(join(tmpdir(), "newcomer-")));
const clone = join(temporary, "canvassing");
const { PORT, CI_CACHES } = process.env;
const inCi = CI_CACHES !== undefined;

/** The environment variables of a new terminal, without those of the npm script that runs this file. */
const { HOME = "", PATH = "" } = process.env;
const env = {
  HOME,
  PATH: PATH.split(":")
    .filter((folder) => !folder.includes("node_modules"))
    .join(":"),
  TMPDIR: temporary,
  npm_config_prefer_offline: "true",
  ...(PORT !== undefined && { PORT }),
  // In CI, the clone uses bundles that are already built. The cache key of a bundle depends on the source files. If the clone lacks one of
  // these files, the clone therefore builds its own bundle.
  ...(inCi && { CI_CACHES }),
};

/** Replaces `npm ci` in CI, which has already installed the same packages: the clone gets hard links to them. */
const LINKED_PACKAGES = `npm() {
  [ "$1" = ci ] || { command npm "$@"; return; }
  (cd '${root}' && find . -name node_modules -prune -not -path './cdk.out/*' -print) | while read -r packages; do
    cp -al "${root}/$packages" "$packages"
    rm -rf "$packages/.cache" "$packages"/.vite*
  done
}
`;

const BLOCK_LIMIT_MS = 900_000;
const terminals: Terminal[] = [];

/** A shell that keeps its variables and its working directory between blocks. It exits at the first command that fails. */
class Terminal {
  readonly #shell: ChildProcess;
  #output = "";
  #blocks = 0;

  constructor(cwd: string) {
    this.#shell = spawn("sh", ["-eu"], { cwd, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
    if (inCi) this.#shell.stdin?.write(LINKED_PACKAGES);
    for (const stream of [this.#shell.stdout, this.#shell.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#output += text;
      });
    }
    terminals.push(this);
  }

  /** Resolves when the block has ended, or when its output says that it serves requests. Rejects if a command fails. */
  async run(code: string): Promise<{ output: string; serves: boolean }> {
    const file = join(temporary, `block-${terminals.length}-${++this.#blocks}.sh`);
    const mark = `@@ end of block ${this.#blocks}`;
    writeFileSync(file, code);
    this.#output = "";
    this.#shell.stdin?.write(`. ${file} </dev/null\necho\necho '${mark}'\n`);
    for (let waited = 0; waited < BLOCK_LIMIT_MS; waited += 50) {
      if (this.#output.includes(mark)) return { output: this.#output.split(mark)[0] ?? "", serves: false };
      if (/^(?:ready|listening on) http/m.test(this.#output)) return { output: this.#output, serves: true };
      if (this.#shell.exitCode !== null) throw new Error(`exit code ${this.#shell.exitCode}:\n${this.#output}`);
      await wait(50);
    }
    throw new Error(`no end after ${BLOCK_LIMIT_MS / 1_000} s:\n${this.#output}`);
  }

  async close(): Promise<void> {
    const { pid, exitCode, signalCode } = this.#shell;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    const ended = once(this.#shell, "exit");
    // A negative id means the process group, which contains the shell and all processes that it has started.
    process.kill(-pid, "SIGTERM");
    await ended;
  }
}

async function step(name: string, work: () => unknown): Promise<void> {
  const started = Date.now();
  try {
    await work();
  } catch (error) {
    console.log(`FALSE  ${name}\n${error instanceof Error ? error.message : error}`);
    throw new Error(name);
  }
  console.log(`ok     ${name} (${((Date.now() - started) / 1_000).toFixed(1)} s)`);
}

/** Returns true if the actual JSON matches the JSON that the document shows. */
function matches(shown: unknown, actual: unknown): boolean {
  if (shown === "…") return actual !== undefined;
  if (typeof shown !== "object" || shown === null) return shown === actual;
  if (typeof actual !== "object" || actual === null) return false;
  if (Array.isArray(shown) && (!Array.isArray(actual) || actual.length !== shown.length)) return false;
  const fields = new Map(Object.entries(actual));
  return Object.entries(shown).every(([name, value]) => name === "…" || matches(value, fields.get(name)));
}

/** Replaces what a newcomer would replace: the placeholder of the repository's URL, and the port if 3000 is in use. */
const asTyped = (code: string): string =>
  code.replaceAll("REPOSITORY", root).replaceAll("127.0.0.1:3000", `127.0.0.1:${PORT ?? 3000}`);

async function follow(document: string): Promise<void> {
  const text = readFileSync(join(document === "README.md" ? root : clone, document), "utf8");
  const blocks = [...text.matchAll(/^```(\w+)(?: (\S+))?\n(.*?)^```$/gms)];
  let terminal: Terminal | undefined;
  let printed: string | undefined;
  for (const [number, [, language, word, code = ""]] of blocks.entries()) {
    const name = `${document}, block ${number + 1}`;
    if (language === "sh" && (word === "aws" || (word === "slow" && inCi))) {
      console.log(`skip   ${name}: ${word === "aws" ? "needs an AWS account" : "is slow"}`);
      printed = undefined;
    } else if (language === "sh") {
      await step(name, async () => {
        terminal ??= new Terminal(document === "README.md" && number === 0 ? temporary : clone);
        const { output, serves } = await terminal.run(asTyped(code));
        printed = output;
        if (serves) terminal = undefined;
      });
    } else if (language === "ts" && word !== undefined) {
      appendFileSync(join(clone, word), code);
    } else if (language === "json" && printed !== undefined) {
      const answer = printed.trim().split("\n").at(-1) ?? "";
      await step(name, () => {
        if (!matches(JSON.parse(code), JSON.parse(answer))) throw new Error(`the answer is another one: ${answer}`);
      });
      printed = undefined;
    }
  }
}

const documents = (): string[] => [
  "README.md",
  ...readdirSync(join(clone, "docs"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md") && !file.includes("node_modules") && !file.startsWith("decisions"))
    .map((file) => join("docs", file))
    .sort(),
];

async function main(): Promise<void> {
  const { stdout } = spawnSync("git", ["status", "--porcelain"], { cwd: root, encoding: "utf8" });
  if (stdout !== "") console.log("note   the clone has no changes that are not committed");
  await follow("README.md");
  for (const document of documents().filter((file) => file !== "README.md")) await follow(document);
  // The smoke test uses the service that the README has started, which still runs.
  await step("npm run smoke", () => new Terminal(clone).run("npm run --silent smoke"));
}

try {
  await main();
} catch {
  process.exitCode = 1;
} finally {
  for (const terminal of terminals) await terminal.close();
  rmSync(temporary, { recursive: true, force: true });
}
