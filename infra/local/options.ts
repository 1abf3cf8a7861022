/** Reads the options of the local service from the flags and variables of `npm start`, and makes the deployment configuration from them. */
import { parseArgs } from "node:util";
import * as z from "zod/mini";
import { AllowedOrigins, type DeployConfig } from "../config.ts";
import { firstFault, Host, Port } from "./address.ts";
import { LocalError, messageOf } from "./error.ts";
import { AUDIENCE, type Identity, JWKS_PATH } from "./identity.ts";

interface TemplateOptions {
  readonly webhookUrlPolicy: DeployConfig["webhookUrlPolicy"];
  readonly timeScale: number;
  readonly allowedOrigins?: readonly string[];
  /** Makes the templates in the order of their deployment. Tests of the local runtime replace this function. */
  readonly synthesize?: (config: DeployConfig, outDir: string) => Promise<readonly unknown[]>;
}

export interface LocalOptions extends TemplateOptions {
  /** The port of the service. The value 0 means any free port. */
  readonly port: number;
  readonly host?: string;
  /** The directory of the data. If it is undefined, all data is in memory. */
  readonly dataDir?: string | undefined;
  /** Whether to delete the data of an earlier run before the start. */
  readonly fresh?: boolean;
  /** Whether to load the demo companies into a new table. */
  readonly demo?: boolean;
  /** The number of synthetic prospects to add to the first demo company. */
  readonly seed?: number;
  /** Whether to refuse everything that the template's policies do not grant, as IAM does. This sends each DynamoDB call through a proxy. */
  readonly enforceRights?: boolean;
  /** Whether to write the functions' output to standard error in addition to the log file. */
  readonly verbose?: boolean;
  /** Called with each line that a function or Lambda writes to a log group. */
  readonly onLogLine?: (line: LogLine) => void;
  /** The URL of a DynamoDB-compatible server to use instead of the bundled one. */
  readonly dynamoDbEndpoint?: string | undefined;
}

export interface LogLine {
  /** The file of the function, as the template's metadata names it. */
  readonly file: string;
  /** The name of the log group. */
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

/** Reads the options. Throws a LocalError that names the invalid flag or variable. */
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

/**
 * The concurrency of the local service. It has fewer senders than a deployed service, because each sender is a thread that uses some 30
 * MB.
 */
const LOCAL_CAPACITY = { accountConcurrency: 1_000, deliverySenders: 5, jobs: 10, reserved: {}, memoryMb: {} } as const;

/** Makes the templates of a deployment with the settings of one machine. */
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
  // Load the CDK only if it is needed, because loading takes a second.
  const make = synthesize ?? (await import("../synth.ts")).templatesInOrder;
  return make(config, outDir);
}
