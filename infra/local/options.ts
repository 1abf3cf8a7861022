/** Reads the options of `npm start` from flags and environment variables, and makes the templates for a local start. */
import { parseArgs } from "node:util";
import * as z from "zod/mini";
import type { DeployConfig } from "../settings/config.ts";
import { AllowedOrigins } from "../settings/context.ts";
import { firstFault, Host, Port } from "./address.ts";
import { demoUsers } from "./demo-users.ts";
import { LocalError, messageOf } from "./error.ts";
import { AUDIENCE, type Identity, JWKS_PATH } from "./identity.ts";

interface TemplateOptions {
  readonly webhookUrlPolicy: DeployConfig["webhookUrlPolicy"];
  readonly timeScale: number;
  readonly allowedOrigins?: readonly string[];
  /** Makes the templates in the order of their deployment. Tests pass their own templates. */
  readonly synthesize?: (config: DeployConfig, outDir: string) => Promise<readonly unknown[]>;
}

export interface LocalOptions extends TemplateOptions {
  /** The value 0 means any free port. */
  readonly port: number;
  readonly host?: string;
  /** The data directory. Undefined keeps all data in memory. */
  readonly dataDir?: string | undefined;
  readonly fresh?: boolean;
  readonly demo?: boolean;
  readonly seed?: number;
  /** Whether to refuse calls that the IAM policies do not allow. This sends each DynamoDB call through a proxy. */
  readonly enforceRights?: boolean;
  /** Whether to write the functions' output also to standard error. */
  readonly verbose?: boolean;
  /** Called with each line that a deployed function would write to CloudWatch. */
  readonly onLogLine?: (line: LogLine) => void;
  /** A DynamoDB-compatible server to use instead of the bundled one. */
  readonly dynamoDbEndpoint?: string | undefined;
}

export interface LogLine {
  readonly file: string;
  readonly group: string;
  readonly text: string;
}

const Positive = z.pipe(z.pipe(z.string(), z.transform(Number)), z.number().check(z.positive()));
const Count = z.pipe(z.pipe(z.string().check(z.regex(/^\d+$/)), z.transform(Number)), z.int());

const Settings = z.object({
  PORT: Port,
  HOST: Host,
  DATA_DIR: z._default(z.string().check(z.minLength(1)), ".local"),
  WEBHOOK_URL_POLICY: z._default(z.enum(["public", "local"]), "local"),
  LOCAL_TIME_SCALE: z._default(Positive, 1),
  ALLOWED_ORIGINS: AllowedOrigins,
  DYNAMODB_ENDPOINT: z.optional(z.url()),
  LOG: z.optional(z.string()),
  seed: z._default(Count, 0),
});

export function readOptions(args: readonly string[], env: NodeJS.ProcessEnv): LocalOptions {
  const flags = readFlags(args);
  const parsed = z.safeParse(Settings, { ...env, seed: flags.seed });
  if (!parsed.success) throw firstFault(parsed.error, ["seed"]);
  const settings = parsed.data;
  return {
    port: settings.PORT,
    host: settings.HOST,
    dataDir: flags.memory ? undefined : settings.DATA_DIR,
    fresh: flags.fresh,
    webhookUrlPolicy: settings.WEBHOOK_URL_POLICY,
    timeScale: settings.LOCAL_TIME_SCALE,
    allowedOrigins: settings.ALLOWED_ORIGINS,
    demo: true,
    seed: settings.seed,
    verbose: settings.LOG === "1",
    dynamoDbEndpoint: settings.DYNAMODB_ENDPOINT,
  };
}

function readFlags(args: readonly string[]): { fresh: boolean; memory: boolean; seed: string | undefined } {
  const options = {
    fresh: { type: "boolean", default: false },
    memory: { type: "boolean", default: false },
    seed: { type: "string" },
  } as const;
  try {
    const { fresh, memory, seed } = parseArgs({ args: [...args], options }).values;
    return { fresh, memory, seed };
  } catch (error) {
    throw new LocalError(`${messageOf(error)} (flags: --fresh, --memory, --seed N)`);
  }
}

/** Fewer senders than in a deployment, because each is a thread with some 30 MB. */
const LOCAL_CAPACITY = { accountConcurrency: 1_000, deliverySenders: 5, jobs: 10, reserved: {}, memoryMb: {} } as const;

/** Makes the same templates as a deployment, with the settings of one machine. */
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
    watch: { runbook: "docs/runbook.md" },
  };
  // Loading the CDK takes a second, so load it only when it is needed.
  if (synthesize !== undefined) return synthesize(config, outDir);
  const { templatesInOrder } = await import("../synth.ts");
  return templatesInOrder(config, outDir, { signIn: { tokenPath: "local/token", users: demoUsers } });
}
