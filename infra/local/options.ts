/** The options of the local service, and how the flags and variables of `npm start` give them. */
import { parseArgs } from "node:util";
import * as z from "zod/mini";
import { AllowedOrigins } from "../config.ts";
import { firstFault, Host, Port } from "./address.ts";
import { LocalError, messageOf } from "./error.ts";
import type { TemplateOptions } from "./templates.ts";

export interface LocalOptions extends TemplateOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly host?: string;
  /** Undefined keeps everything in memory. */
  readonly dataDir?: string | undefined;
  /** Begins anew, whatever the directory holds. */
  readonly fresh?: boolean;
  /** Loads the demo companies into a new table. */
  readonly demo?: boolean;
  /** Adds so many synthetic prospects to the first demo company. */
  readonly seed?: number;
  /** Functions may touch what the template's policies grant them, as on AWS: costs a hop per call of DynamoDB. */
  readonly enforceRights?: boolean;
  /** Functions' output and failures go to standard error even where nothing is kept on disk. */
  readonly verbose?: boolean;
  /** Hears each line that a function or Lambda writes to a log group. */
  readonly onLogLine?: (line: LogLine) => void;
  /** A DynamoDB-compatible server to use instead of one of our own. */
  readonly dynamoDbEndpoint?: string | undefined;
}

export interface LogLine {
  /** Function file, as the template's metadata names it. */
  readonly file: string;
  /** Name of the log group. */
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

/** Throws a LocalError that names the flag or variable at fault. */
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
