/** One local service for the whole test run; with BASE_URL the API tests run against one that is already there. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import * as z from "zod/mini";
import { SigningKey } from "../infra/local/identity.ts";
import { startLocal } from "../infra/local/service.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Without a slash at the end. */
    readonly baseUrl: string;
    /** The issuer's private key, to forge tokens with. Null with a BASE_URL that keeps it to itself. */
    readonly signingKey: SigningKey | null;
  }
}

/** Retry gaps and windows of minutes pass in seconds. */
const TIME_SCALE = 60;

export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const other = process.env.BASE_URL ?? "";
  // The test runner itself puts a path into this variable where it is not set.
  if (URL.canParse(other)) {
    const baseUrl = other.replace(/\/$/, "");
    await assertSignIn(baseUrl);
    project.provide("baseUrl", baseUrl);
    project.provide("signingKey", await keptSigningKey(baseUrl));
    return undefined;
  }
  const service = await startLocal({
    port: 0,
    webhookUrlPolicy: "local",
    timeScale: TIME_SCALE,
    allowedOrigins: ["https://app.example.com"],
    demo: true,
    enforceRights: true,
    verbose: process.env.LOG === "1",
  });
  project.provide("baseUrl", service.url);
  project.provide("signingKey", service.signingKey);
  return async () => {
    await service.stop();
    // Answered by a 5xx where it happened; named here, so that nobody has to guess.
    for (const refusal of service.refusals) console.error(refusal);
  };
}

/** The suite makes companies and users of its own and signs in as each: nothing but a local service gives that. */
async function assertSignIn(baseUrl: string): Promise<void> {
  const answer = await fetch(`${baseUrl}/local/outputs`).catch(() => undefined);
  if (answer?.ok === true) return;
  throw new Error(`BASE_URL ${baseUrl}: no local service answers there, and the suite signs in by its /local/token`);
}

const PublicKeys = z.object({ keys: z.array(z.object({ kid: z.string(), n: z.string() })) });

/** A service that was started here without `--memory` keeps its key in DATA_DIR; it is taken if it is the issuer's. */
async function keptSigningKey(baseUrl: string): Promise<SigningKey | null> {
  const file = join(process.env.DATA_DIR ?? ".local", "signing-key.json");
  if (!existsSync(file)) return null;
  const key = z.parse(SigningKey, JSON.parse(readFileSync(file, "utf8")));
  const { keys } = PublicKeys.parse(await (await fetch(`${baseUrl}/local/oidc/.well-known/jwks.json`)).json());
  return keys.some((known) => known.kid === key.kid && known.n === key.n) ? key : null;
}
