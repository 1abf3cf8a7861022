/**
 * Starts one local service for all vitest projects, or uses the service at BASE_URL. In `npm test` and `npm run test:gate`, one process
 * runs all functions. In the long tests, worker threads run the functions' bundles. In `test:gate` and the long tests, a function may do
 * only what its role in the template allows.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import * as z from "zod/mini";
import { SigningKey } from "../../infra/local/engines/identity.ts";
import { assertGrantsAreUsed } from "./grants.ts";

declare module "vitest" {
  export interface ProvidedContext {
    readonly baseUrl: string;
    /** The key with which the service signs access tokens. Tests forge tokens with it. Null for a service whose key they do not have. */
    readonly signingKey: SigningKey | null;
  }
}

export async function setup({ vitest }: TestProject): Promise<(() => Promise<void>) | undefined> {
  // All vitest projects share the values of the root project. The first project that gets here starts the service.
  const project = vitest.getRootProject();
  if ("baseUrl" in project.getProvidedContext()) return undefined;
  const other = process.env.BASE_URL ?? "";
  // If BASE_URL is not set, vitest sets it to a path. Only a complete URL therefore means that a service is already running.
  if (URL.canParse(other)) {
    const baseUrl = other.replace(/\/$/, "");
    await assertSignIn(baseUrl);
    project.provide("baseUrl", baseUrl);
    project.provide("signingKey", await keptSigningKey(baseUrl));
    return undefined;
  }
  const names = vitest.projects.map(({ name }) => name);
  const isDeployed = names.includes("long");
  const withRights = names.includes("deep") && !isDeployed;
  const mode = isDeployed ? ["--deployed"] : withRights ? ["--rights"] : [];
  const service = fork(join(import.meta.dirname, "serve.ts"), mode);
  const ended = once(service, "exit").then(([code]) => z.parse(ExitCode, code));
  const { url, signingKey } = await readyOf(service, ended);
  project.provide("baseUrl", url);
  project.provide("signingKey", signingKey);
  return async () => {
    const { uses, faults } = await usesOf(service);
    service.kill("SIGTERM");
    const code = await ended;
    if (code !== 0) throw new Error(`the local service ended with ${code}`);
    if (faults.length > 0) throw new Error(faults.join("\n"));
    if (withRights && isWhole(vitest)) assertGrantsAreUsed(uses);
  };
}

const Used = z.object({ uses: z.record(z.string(), z.array(z.string())), faults: z.array(z.string()) });

async function usesOf(service: ChildProcess): Promise<z.infer<typeof Used>> {
  const answer = once(service, "message");
  service.send("uses");
  return z.parse(Used, (await answer)[0]);
}

/** Returns true if all API and deep tests ran. Otherwise a grant that only a skipped test uses would seem to be unused. */
function isWhole({ config, state }: TestProject["vitest"]): boolean {
  if (config.testNamePattern !== undefined || config.tagsFilter !== undefined) return false;
  const files = globSync("test/**/*.{api,deep}.test.ts", { cwd: config.root }).map((file) => join(config.root, file));
  const ran = Map.groupBy(state.getTestModules(), ({ moduleId }) => moduleId);
  return files.every((file) => {
    const tests = (ran.get(file) ?? []).flatMap((module) => [...module.children.allTests()]);
    return tests.length > 0 && tests.every((test) => test.result().state !== "pending");
  });
}

const ExitCode = z.nullable(z.number());
const Ready = z.object({ url: z.string(), signingKey: SigningKey });

/** Waits until the service accepts requests: then it sends its first message. Throws if the service ends before. */
async function readyOf(service: ChildProcess, ended: Promise<number | null>): Promise<z.infer<typeof Ready>> {
  const early = ended.then((code) => Promise.reject(new Error(`the local service ended with ${code}`)));
  const [message] = await Promise.race([once(service, "message"), early]);
  return z.parse(Ready, message);
}

/** Throws unless the service at BASE_URL is a local one. The tests create users and sign in as them, which only a local service allows. */
async function assertSignIn(baseUrl: string): Promise<void> {
  const answer = await fetch(`${baseUrl}/local/outputs`).catch(() => undefined);
  if (answer?.ok === true) return;
  throw new Error(`BASE_URL ${baseUrl}: no local service answers at this URL, and the tests need its /local/token`);
}

const PublicKeys = z.object({ keys: z.array(z.object({ kid: z.string(), n: z.string() })) });

/** Returns the signing key in DATA_DIR, where a service without `--memory` stores it. Null if the service publishes another public key. */
async function keptSigningKey(baseUrl: string): Promise<SigningKey | null> {
  const file = join(process.env.DATA_DIR ?? ".local", "signing-key.json");
  if (!existsSync(file)) return null;
  const key = z.parse(SigningKey, JSON.parse(readFileSync(file, "utf8")));
  const { keys } = PublicKeys.parse(await (await fetch(`${baseUrl}/local/oidc/.well-known/jwks.json`)).json());
  return keys.some((known) => known.kid === key.kid && known.n === key.n) ? key : null;
}
