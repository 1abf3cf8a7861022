/**
 * Starts one local service for all vitest projects, or uses that at BASE_URL. In `npm test` and the gate, one process runs all functions. The
 * long tests run their bundles in worker threads. In the gate, a function may do only what the template allows its role.
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
  // All projects share these values. The first project that gets here starts the service.
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

/** Returns true if all API and deep tests ran. Otherwise the grants that only the other tests use would seem to be unused. */
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

/** The service sends its first message when it accepts requests. */
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

/** Returns the key in DATA_DIR, which a service without `--memory` stores there, if the service publishes the matching public key. */
async function keptSigningKey(baseUrl: string): Promise<SigningKey | null> {
  const file = join(process.env.DATA_DIR ?? ".local", "signing-key.json");
  if (!existsSync(file)) return null;
  const key = z.parse(SigningKey, JSON.parse(readFileSync(file, "utf8")));
  const { keys } = PublicKeys.parse(await (await fetch(`${baseUrl}/local/oidc/.well-known/jwks.json`)).json());
  return keys.some((known) => known.kid === key.kid && known.n === key.n) ? key : null;
}
