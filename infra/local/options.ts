/** Reads the options of `npm start` from flags and environment variables. Also creates the CDK templates for a local start. */
import * as z from "zod/mini";
import { optionsOf } from "../cli/command/options.ts";
import { type Basemap, basemapOf } from "../edge/console-site.ts";
import { type Capacity, capacityOf, companyThrottle } from "../settings/capacity.ts";
import { activeTableOf, type DeployConfig } from "../settings/config.ts";
import { AllowedOrigins, TableStream } from "../settings/context.ts";
import { standardRetention } from "../settings/retention.ts";
import { BasemapOrigins, BasemapStyleUrl } from "../settings/values.ts";
import { cachedTemplates } from "../template-cache.ts";
import { demoUsers } from "./demo/users.ts";
import { AUDIENCE, type Identity, JWKS_PATH } from "./engines/identity.ts";
import { CONSOLE_CLIENT } from "./engines/sign-in.ts";
import type { Thread, ThreadOptions } from "./runtime/environment.ts";
import type { warmEnvironments } from "./runtime/pool.ts";
import { firstFault, Host, Port } from "./servers/address.ts";
import { LocalError } from "./servers/error.ts";

export interface LocalOptions {
  readonly webhookUrlPolicy: DeployConfig["webhookUrlPolicy"];
  readonly timeScale: number;
  /** A restored table, which the service uses instead of the table of the template. */
  readonly activeTable?: DeployConfig["activeTable"];
  readonly allowedOrigins?: DeployConfig["allowedOrigins"];
  /** The throttles of all requests and of each company. By default, they are those of the capacity preset `production`. */
  readonly throttles?: Pick<Capacity, "requests" | "company"> | undefined;
  /** Tests pass this function to use templates of their own. It returns them in the order of their deployment. */
  readonly synthesize?: (config: DeployConfig, outDir: string) => Promise<readonly unknown[]>;
  /** If true, the service runs the bundles of a deployment. Otherwise it runs those of `bundleShared`, which are built faster. */
  readonly asDeployed?: boolean;
  readonly onStep?: (step: string) => void;
  /** 0 means any free port. */
  readonly port: number;
  readonly host?: string;
  /** If it is undefined, all data is in memory. */
  readonly dataDir?: string | undefined;
  readonly fresh?: boolean;
  readonly demo?: boolean;
  readonly seed?: number;
  /** If true, the first demo company gets three webhooks. The deliveries of two of them fail. */
  readonly demoWebhooks?: boolean;
  /**
   * If true, calls of S3, and of DynamoDB by functions in the process of the service, need a right of the function's IAM policies. Calls of
   * KMS always need one.
   */
  readonly enforceRights?: boolean;
  readonly warmth?: Parameters<typeof warmEnvironments>[0];
  /** Maximum number of environments of a function that serves requests. */
  readonly requestEnvironments?: number;
  /** Tests pass this function to run all functions in the process of the test instead of in worker threads. */
  readonly startThread?: (options: ThreadOptions) => Thread;
  /** If true, the output of the functions also goes to standard error. */
  readonly verbose?: boolean;
  /** Receives each line that a deployed function would write to CloudWatch. */
  readonly onLogLine?: (line: LogLine) => void;
  readonly basemap?: Basemap;
  /** The URL of a DynamoDB-compatible server that is used instead of the bundled server. */
  readonly dynamoDbEndpoint?: string | undefined;
  /** Is called when the port and the data directory belong to this service. */
  readonly onClaimed?: () => void;
}

export interface LogLine {
  readonly file: string;
  readonly group: string;
  readonly text: string;
}

/** The preset `production` with few instead of 50 senders, because here each sender is a thread with about 30 MB of memory. */
const LOCAL_CAPACITY: Capacity = {
  ...capacityOf({ preset: "production" }),
  deliverySenders: 5,
  reserved: {},
  memoryMb: {},
  // No throttle is needed, because function.ts divides the environments of a function among companies that read streamed responses.
  limitsStreams: false,
};

const Positive = z.pipe(z.pipe(z.string(), z.transform(Number)), z.number().check(z.positive()));
const Count = z.pipe(z.pipe(z.string().check(z.regex(/^\d+$/)), z.transform(Number)), z.int());

const Settings = z.object({
  PORT: Port,
  HOST: Host,
  DATA_DIR: z._default(z.string().check(z.minLength(1)), ".local"),
  WEBHOOK_URL_POLICY: z._default(z.enum(["public", "local"]), "local"),
  LOCAL_TIME_SCALE: z._default(Positive, 1),
  ALLOWED_ORIGINS: AllowedOrigins,
  BASEMAP_STYLE_URL: BasemapStyleUrl,
  BASEMAP_ORIGINS: BasemapOrigins,
  DYNAMODB_ENDPOINT: z.optional(z.url()),
  ACTIVE_TABLE_STREAM: TableStream,
  REQUEST_RATE: z.optional(Positive),
  COMPANY_RATE: z.optional(Positive),
  LOG: z.optional(z.string()),
  seed: z._default(Count, 0),
});

export function readOptions(args: readonly string[], env: NodeJS.ProcessEnv): LocalOptions {
  const flags = optionsOf(args, FLAGS, usage);
  const parsed = z.safeParse(Settings, { ...env, seed: flags.seed });
  if (!parsed.success) throw firstFault(parsed.error, ["seed"]);
  const settings = parsed.data;
  const activeTable = activeTableOf(settings.ACTIVE_TABLE_STREAM);
  const { BASEMAP_STYLE_URL: styleUrl, BASEMAP_ORIGINS: origins } = settings;
  if (origins !== undefined && styleUrl === undefined) {
    throw new LocalError("BASEMAP_STYLE_URL: needed with BASEMAP_ORIGINS");
  }
  const basemap = basemapOf(styleUrl, origins);
  if (flags.webhooks && settings.WEBHOOK_URL_POLICY !== "local") {
    throw new LocalError("--webhooks adds receivers on this machine, which WEBHOOK_URL_POLICY=public refuses");
  }
  return {
    port: settings.PORT,
    host: settings.HOST,
    dataDir: flags.memory ? undefined : settings.DATA_DIR,
    fresh: flags.fresh,
    webhookUrlPolicy: settings.WEBHOOK_URL_POLICY,
    timeScale: settings.LOCAL_TIME_SCALE,
    ...(activeTable !== undefined && { activeTable }),
    allowedOrigins: settings.ALLOWED_ORIGINS,
    ...(basemap !== undefined && { basemap }),
    throttles: throttlesOf(settings.REQUEST_RATE, settings.COMPANY_RATE),
    demo: true,
    seed: settings.seed,
    demoWebhooks: flags.webhooks,
    verbose: settings.LOG === "1",
    dynamoDbEndpoint: settings.DYNAMODB_ENDPOINT,
  };
}

/** Returns the throttles of these rates. The burst of each throttle is twice its rate, as in a deployment. */
function throttlesOf(requestRate: number | undefined, companyRate: number | undefined): LocalOptions["throttles"] {
  const perSecond = requestRate ?? LOCAL_CAPACITY.requests.perSecond;
  const requests = { perSecond, burst: Math.ceil(2 * perSecond) };
  return { requests, company: companyThrottle(requests, companyRate) };
}

const usage = `npm start -- [options]
    --fresh      deletes the data of earlier runs first
    --memory     keeps nothing on disk
    --webhooks   adds three webhooks to the first demo company
    --seed N     adds N synthetic prospects to the first demo company
docs/local.md lists the settings, which are environment variables
exit code 0: stopped by a signal, 1: failed, 2: an unknown option`;

const FLAGS = {
  fresh: { type: "boolean", default: false },
  memory: { type: "boolean", default: false },
  seed: { type: "string" },
  webhooks: { type: "boolean", default: false },
} as const;

/** Creates the templates of a deployment with settings for one machine, and writes the functions' bundles into `outDir`. */
export async function makeTemplates(
  { webhookUrlPolicy, timeScale, activeTable, allowedOrigins = [], throttles, ...options }: LocalOptions,
  { issuer }: Pick<Identity, "issuer">,
  url: string,
  outDir: string,
): Promise<readonly unknown[]> {
  const config = {
    issuer,
    jwksUri: `${issuer}${JWKS_PATH}`,
    audience: [AUDIENCE],
    webhookUrlPolicy,
    timeScale,
    retention: standardRetention,
    rollout: "at-once",
    ...(activeTable !== undefined && { activeTable }),
    allowedOrigins,
    console: { localUrl: url, clientId: CONSOLE_CLIENT },
    capacity: { ...LOCAL_CAPACITY, ...throttles },
    serverTiming: true,
    watch: { runbook: "docs/runbook.md", canary: false },
  } satisfies DeployConfig;
  if (options.synthesize !== undefined) return options.synthesize(config, outDir);
  const bundles = { signIn: { tokenPath: "local/token", users: demoUsers }, isShared: options.asDeployed !== true };
  return cachedTemplates(config, outDir, bundles, options.onStep);
}
