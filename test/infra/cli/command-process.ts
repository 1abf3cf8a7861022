/** Lists the npm commands, which are the scripts in package.json, and runs them in processes of their own. */
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as z from "zod/mini";
import { root } from "../../../infra/build/bundle.ts";
import { type AccountEndpoint, STACK } from "../../harness/account-endpoint.ts";
import { baseUrl } from "../../harness/client.ts";
import { type Ended, startProcess } from "../../harness/process.ts";

const Package = z.object({ scripts: z.record(z.string(), z.string()) });

type Command = readonly [name: string, file: string];

/** Returns the admin commands, the benches, the load test, and `npm run newcomer`. */
export const commandFiles = (): Command[] =>
  scriptsThat(/^(?:exec )?node ((?:infra\/cli\/|test\/bench\/|test\/load\/|test\/newcomer)\S*\.ts)$/);

/** Returns the commands that generate or check files. Their files export `main`. */
export const generatorFiles = (): Command[] => scriptsThat(/^node (infra\/(?!cli\/|local\/)\S+\.ts)$/);

export const scripts = (): Readonly<Record<string, string>> =>
  Package.parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8"))).scripts;

function scriptsThat(pattern: RegExp): Command[] {
  return Object.entries(scripts()).flatMap(([name, script]) => {
    const [, file] = pattern.exec(script) ?? [];
    return file === undefined ? [] : [[name, file] as const];
  });
}

/**
 * The environment variables of a command that reaches neither AWS nor a local service. Such a command parses its arguments and then fails.
 */
const { PATH, NODE_COMPILE_CACHE } = process.env;
export const nowhere = { PATH, NODE_COMPILE_CACHE, HOME: tmpdir(), PORT: "9", AWS_EC2_METADATA_DISABLED: "true" };

export const runFile = (file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> =>
  startProcess(process.execPath, [file, ...args], { ...nowhere, ...env }).ended;

/** The factor by which the clock of a command runs faster. With this factor, a wait of 16 minutes takes six seconds. */
export const FAST_SCALE = 160;

/** Starts the admin command on the simulated account. With `since`, its clock begins at this time and runs `FAST_SCALE` times as fast. */
export function startOnAccount(account: AccountEndpoint, file: string, args: readonly string[], since?: number) {
  const clock = since !== undefined && { FAST_CLOCK_SINCE: String(since), FAST_CLOCK_SCALE: String(FAST_SCALE) };
  const preload = since === undefined ? [] : ["--import", join(root, "test/harness/fast-clock.ts")];
  const command = [...preload, `infra/cli/${file}.ts`, ...args, "--stack", STACK];
  return startProcess(process.execPath, command, { ...nowhere, ...account.environment, ...clock });
}

export function runAt(url: string, file: string, ...args: readonly string[]): Promise<Ended> {
  const { hostname: HOST, port: PORT } = new URL(url);
  return runFile(`infra/cli/${file}`, args, { ...process.env, HOST, PORT });
}

/** Runs the admin command on the service of the tests. */
export const runOnService = (file: string, ...args: readonly string[]): Promise<Ended> =>
  runAt(baseUrl(), file, ...args);
