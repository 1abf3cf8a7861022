/** One local service for the whole test run; with BASE_URL the API tests run against another one, local or deployed. */
import type { TestProject } from "vitest/node";
import type { SigningKey } from "../infra/local/identity.ts";
import { startLocal } from "../infra/local/service.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Without a slash at the end. */
    readonly baseUrl: string;
    /** The issuer's private key, to forge tokens with. Not there with BASE_URL. */
    readonly signingKey: SigningKey;
  }
}

/** Retry gaps and windows of minutes pass in seconds. */
const TIME_SCALE = 60;

export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const other = process.env.BASE_URL ?? "";
  // The test runner itself puts a path into this variable where it is not set.
  if (URL.canParse(other)) {
    project.provide("baseUrl", other.replace(/\/$/, ""));
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
