/** Starts one local service for all API tests. If BASE_URL is set, the tests use the service at this URL instead. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import * as z from "zod/mini";
import { SigningKey } from "../../infra/local/identity.ts";
import { assertGrantsAreUsed } from "./grants.ts";

declare module "vitest" {
  export interface ProvidedContext {
    readonly baseUrl: string;
    /**
     * The private key that signs access tokens, with which tests forge tokens. It is null if the tests do not have the key of the service
     * at BASE_URL.
     */
    readonly signingKey: SigningKey | null;
  }
}

export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const other = process.env.BASE_URL ?? "";
  // The test runner sets BASE_URL to a path if it is not set. Only a complete URL therefore names a running service.
  if (URL.canParse(other)) {
    const baseUrl = other.replace(/\/$/, "");
    await assertSignIn(baseUrl);
    project.provide("baseUrl", baseUrl);
    project.provide("signingKey", await keptSigningKey(baseUrl));
    return undefined;
  }
  const service = fork(join(import.meta.dirname, "serve.ts"));
  const ended = once(service, "exit").then(([code]) => z.parse(ExitCode, code));
  const { url, signingKey } = await readyOf(service, ended);
  project.provide("baseUrl", url);
  project.provide("signingKey", signingKey);
  return async () => {
    const { uses, leaks } = await usesOf(service);
    service.kill("SIGTERM");
    const code = await ended;
    if (code !== 0) throw new Error(`the local service ended with ${code}`);
    if (leaks.length > 0) throw new Error(leaks.join("\n"));
    if (await isWhole(project)) assertGrantsAreUsed(uses);
  };
}

const Used = z.object({ uses: z.record(z.string(), z.array(z.string())), leaks: z.array(z.string()) });

async function usesOf(service: ChildProcess): Promise<z.infer<typeof Used>> {
  const answer = once(service, "message");
  service.send("uses");
  return z.parse(Used, (await answer)[0]);
}

/** Returns true if all API tests ran and passed. After a part of the tests, the grants that only the other tests use would seem unused. */
async function isWhole(project: TestProject): Promise<boolean> {
  if (project.name !== "api" || project.vitest.config.testNamePattern !== undefined) return false;
  const ran = project.vitest.state.getTestModules().filter((module) => module.project.name === project.name);
  const { testFiles } = await project.globTestFiles();
  const files = new Set(ran.map(({ moduleId }) => moduleId));
  const states = ran.flatMap((module) => [...module.children.allTests()].map((test) => test.result().state));
  return (
    testFiles.every((file) => files.has(file)) && states.every((state) => state === "passed" || state === "skipped")
  );
}

const ExitCode = z.nullable(z.number());
const Ready = z.object({ url: z.string(), signingKey: SigningKey });

/** Resolves with the message that the service sends as soon as it accepts requests. */
async function readyOf(service: ChildProcess, ended: Promise<number | null>): Promise<z.infer<typeof Ready>> {
  const early = ended.then((code) => Promise.reject(new Error(`the local service ended with ${code}`)));
  const [message] = await Promise.race([once(service, "message"), early]);
  return z.parse(Ready, message);
}

/**
 * Throws an error unless a local service answers at the URL. The tests sign in as users that they create, and only a local service allows
 * this.
 */
async function assertSignIn(baseUrl: string): Promise<void> {
  const answer = await fetch(`${baseUrl}/local/outputs`).catch(() => undefined);
  if (answer?.ok === true) return;
  throw new Error(`BASE_URL ${baseUrl}: no local service answers at this URL, and the tests need its /local/token`);
}

const PublicKeys = z.object({ keys: z.array(z.object({ kid: z.string(), n: z.string() })) });

/**
 * Reads the signing key of a running service. A service that was started without `--memory` stores its key in DATA_DIR. The key is
 * returned only if its public part is the one that the service publishes.
 */
async function keptSigningKey(baseUrl: string): Promise<SigningKey | null> {
  const file = join(process.env.DATA_DIR ?? ".local", "signing-key.json");
  if (!existsSync(file)) return null;
  const key = z.parse(SigningKey, JSON.parse(readFileSync(file, "utf8")));
  const { keys } = PublicKeys.parse(await (await fetch(`${baseUrl}/local/oidc/.well-known/jwks.json`)).json());
  return keys.some((known) => known.kid === key.kid && known.n === key.n) ? key : null;
}
