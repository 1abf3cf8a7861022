/** Makes the templates that this machine hosts: the deployment's own, with the settings of a laptop. */
import type { DeployConfig } from "../config.ts";
import { AUDIENCE, type Identity, JWKS_PATH } from "./identity.ts";

export interface TemplateOptions {
  readonly webhookUrlPolicy: DeployConfig["webhookUrlPolicy"];
  readonly timeScale: number;
  readonly allowedOrigins?: readonly string[];
  /** Makes the templates, in the order in which they are deployed: replaced by tests of this runtime. */
  readonly synthesize?: (config: DeployConfig, outDir: string) => Promise<readonly unknown[]>;
}

/** Each sender is a thread with some 30 MB: fewer than are deployed. */
const LOCAL_CAPACITY = { accountConcurrency: 1_000, deliverySenders: 5, jobs: 10, reserved: {}, memoryMb: {} } as const;

export async function makeTemplates(
  { webhookUrlPolicy, timeScale, allowedOrigins = [], synthesize }: TemplateOptions,
  { issuer }: Pick<Identity, "issuer">,
  outDir: string,
): Promise<readonly unknown[]> {
  const config: DeployConfig = {
    issuer,
    jwksUri: `${issuer}${JWKS_PATH}`,
    audience: [AUDIENCE],
    webhookUrlPolicy,
    timeScale,
    allowedOrigins,
    capacity: LOCAL_CAPACITY,
    serverTiming: true,
  };
  // Loaded only where it is needed: the CDK takes a second to load.
  const make = synthesize ?? (await import("../synth.ts")).templatesInOrder;
  return make(config, outDir);
}
