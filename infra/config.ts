/** The settings of a deployment, read from the CDK context (`-c issuer=...`). Errors name the key. */
import * as z from "zod/mini";
import { type Capacity, capacityOf, presets } from "./capacity.ts";

/** The name of the deployed service stack. In this file because commands of operators need it and must not load the CDK. */
export const STACK_NAME = "Canvassing";

/** The stack that holds the data of the service stack of this name. */
export const dataStackName = (stackName: string): string => `${stackName}-Data`;

export interface DeployConfig {
  /** OpenID Connect issuer; without it the stack makes a Cognito user pool. */
  readonly issuer?: string;
  /** Address of the issuer's keys; without it the authorizer first reads the issuer's discovery document. */
  readonly jwksUri?: string;
  /** Accepted client ids or audiences of access tokens, in addition to the stack's own client. */
  readonly audience: readonly string[];
  /** The user pool sends its mail from this address by SES. Without it, Cognito sends about 50 mails a day for the account. */
  readonly mail?: { readonly from: string; readonly sesIdentity: string };
  /** Names of resources that an earlier deployment left; the stacks use them instead of new, empty ones. */
  readonly adopted?: Adopted;
  /** `local` also permits http and loopback receivers: for development only. */
  readonly webhookUrlPolicy: "public" | "local";
  /** Delays, retry intervals and debounce windows pass this many times faster. */
  readonly timeScale: number;
  /** Concurrency of the functions: bounds the connections to receivers, and leaves some for requests. */
  readonly capacity: Capacity;
  /** Gets mail about alarms. */
  readonly alarmEmail?: string;
  /** Browser origins that may call the API; empty turns CORS off. */
  readonly allowedOrigins: readonly string[];
  /** Adds a `Server-Timing` header with the table units and calls of each answer: for development only. */
  readonly serverTiming: boolean;
}

export interface Adopted {
  readonly table?: string;
  readonly bucket?: string;
  /** ARN of the key that wraps data keys. An adopted table needs it, or its secrets cannot be read. The stack does not change it. */
  readonly secretsKey?: string;
  /** The stack does not change it: CloudFormation cannot import a user pool, because AWS chooses its id. */
  readonly userPool?: { readonly id: string; readonly clientId: string };
}

export const contextKeys = [
  "issuer",
  "jwksUri",
  "audience",
  "mailFrom",
  "sesIdentity",
  "table",
  "bucket",
  "secretsKey",
  "userPool",
  "userPoolClient",
  "webhookUrlPolicy",
  "timeScale",
  "preset",
  "accountConcurrency",
  "deliverySenders",
  "alarmEmail",
  "allowedOrigins",
  "serverTiming",
] as const;

/** A context value is text on the command line and may be a list in cdk.json. */
const List = z.pipe(
  z.union([z.string(), z.array(z.string())]),
  z.transform((value) =>
    (typeof value === "string" ? value.split(",") : value).map((part) => part.trim()).filter((part) => part !== ""),
  ),
);

const isOrigin = (text: string): boolean => text === "*" || (URL.canParse(text) && new URL(text).origin === text);

/** Browser origins, comma-separated; none by default. */
export const AllowedOrigins = z._default(
  z.pipe(
    List,
    z.array(
      z.string().check(
        z.refine(isOrigin, {
          error: ({ input }) => `${String(input)} is not an origin such as https://app.example.com`,
        }),
      ),
    ),
  ),
  [],
);

/** The last part of an identity's ARN is the address or domain that SES has verified. */
const MAIL_FROM = /^(?:[^<>\r\n"]+ <[^\s<>@]+@([^\s<>@]+)>|[^\s<>@]+@([^\s<>@]+))$/;
const SES_IDENTITY = /^arn:aws[a-z-]*:ses:[a-z0-9-]+:\d{12}:identity\/(\S+)$/;

const name = (pattern: RegExp, what: string) => z.optional(z.string().check(z.regex(pattern, `must be ${what}`)));

const Context = z.object({
  issuer: z.optional(z.url("must be a URL")),
  jwksUri: z.optional(z.url("must be a URL")),
  audience: z._default(List, []),
  mailFrom: z.optional(
    z.string().check(z.regex(MAIL_FROM, "must be an address, or a name with one: Acme <no-reply@example.com>")),
  ),
  sesIdentity: z.optional(
    z
      .string()
      .check(z.regex(SES_IDENTITY, "must be the ARN of an identity: arn:aws:ses:REGION:ACCOUNT:identity/example.com")),
  ),
  table: name(/^[\w.-]{3,255}$/, "the name of a table"),
  bucket: name(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, "the name of a bucket"),
  secretsKey: name(
    /^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key\/[\w-]+$/,
    "the ARN of a key: arn:aws:kms:REGION:ACCOUNT:key/ID",
  ),
  userPool: name(/^[\w-]+_[0-9a-zA-Z]+$/, "the id of a user pool: eu-west-1_AbCdEfGhI"),
  userPoolClient: name(/^\w{1,128}$/, "the id of a client of the user pool"),
  webhookUrlPolicy: z._default(z.enum(["public", "local"]), "public"),
  timeScale: z._default(z.coerce.number().check(z.positive("must be a number above 0")), 1),
  preset: z._default(z.enum(presets), "small"),
  accountConcurrency: z.optional(z.coerce.number().check(z.int("must be a whole number"), z.minimum(10))),
  deliverySenders: z.optional(z.coerce.number().check(z.int("must be a whole number"), z.minimum(2), z.maximum(1_000))),
  alarmEmail: z.optional(z.email("must be an e-mail address")),
  allowedOrigins: AllowedOrigins,
  serverTiming: z._default(z.union([z.boolean(), z.stringbool()]), false),
});

/** `read` returns the context value of a key. Throws an error that names each invalid key. */
export function readConfig(read: (key: string) => unknown): DeployConfig {
  const given = contextKeys.map((key) => [key, read(key)] as const).filter(([, value]) => value !== undefined);
  const parsed = z.safeParse(Context, Object.fromEntries(given));
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) => `context key ${issue.path.join(".")}: ${issue.message}`);
    throw new Error(faults.join("\n"));
  }
  const { issuer, jwksUri, mailFrom, sesIdentity, table, bucket, secretsKey, userPool, userPoolClient, ...others } =
    parsed.data;
  const { preset, accountConcurrency, deliverySenders, alarmEmail, ...rest } = others;
  const mail = mailOf(mailFrom, sesIdentity);
  const adopted = adoptedOf({ table, bucket, secretsKey }, userPool, userPoolClient);
  const config: DeployConfig = {
    ...rest,
    capacity: capacityOf({ preset, accountConcurrency, deliverySenders }),
    ...(alarmEmail !== undefined && { alarmEmail }),
    ...(issuer !== undefined && { issuer }),
    ...(jwksUri !== undefined && { jwksUri }),
    ...(mail !== undefined && { mail }),
    ...(adopted !== undefined && { adopted }),
  };
  assertConsistent(config);
  return config;
}

/** The two keys need each other, and SES sends only for the verified identity. */
function mailOf(from: string | undefined, sesIdentity: string | undefined): DeployConfig["mail"] {
  if (from === undefined && sesIdentity === undefined) return undefined;
  if (from === undefined) throw new Error("context key mailFrom: needed with sesIdentity");
  if (sesIdentity === undefined) throw new Error("context key sesIdentity: needed with mailFrom");
  const [, named, bare = named] = MAIL_FROM.exec(from) ?? [];
  const verified = SES_IDENTITY.exec(sesIdentity)?.[1]?.toLowerCase() ?? "";
  const domain = bare?.toLowerCase() ?? "";
  const isItsAddress = from.toLowerCase().replace(/^.*<|>$/g, "") === verified;
  if (!isItsAddress && domain !== verified && !domain.endsWith(`.${verified}`)) {
    throw new Error(`context key mailFrom: ${from} is neither the identity ${verified} nor of its domain`);
  }
  return { from, sesIdentity };
}

function adoptedOf(
  { table, bucket, secretsKey }: Record<"table" | "bucket" | "secretsKey", string | undefined>,
  id: string | undefined,
  clientId: string | undefined,
): Adopted | undefined {
  if (clientId === undefined && id !== undefined) throw new Error("context key userPoolClient: needed with userPool");
  if (id === undefined && clientId !== undefined) throw new Error("context key userPool: needed with userPoolClient");
  const adopted: Adopted = {
    ...(table !== undefined && { table }),
    ...(bucket !== undefined && { bucket }),
    ...(secretsKey !== undefined && { secretsKey }),
    ...(id !== undefined && clientId !== undefined && { userPool: { id, clientId } }),
  };
  return Object.keys(adopted).length === 0 ? undefined : adopted;
}

/** Checks across keys. */
export function assertConsistent({ issuer, jwksUri, audience, mail, adopted, webhookUrlPolicy }: DeployConfig): void {
  if (issuer !== undefined && mail !== undefined) {
    throw new Error(
      "context key mailFrom: an issuer of your own sends its mail itself; leave out mailFrom and sesIdentity",
    );
  }
  if (issuer !== undefined && adopted?.userPool !== undefined) {
    throw new Error("context key userPool: conflicts with issuer; leave out one of the two");
  }
  if (mail !== undefined && adopted?.userPool !== undefined) {
    throw new Error("context key mailFrom: an adopted user pool keeps its sender");
  }
  if (issuer !== undefined && audience.length === 0) {
    throw new Error("context key audience: needed with an issuer; otherwise any client of the issuer could sign in");
  }
  if (jwksUri !== undefined && issuer === undefined) {
    throw new Error(
      "context key jwksUri: needs an issuer; the stack's own user pool has a documented address of its keys",
    );
  }
  for (const [key, url] of Object.entries({ issuer, jwksUri })) {
    if (url === undefined || url.startsWith("https://") || webhookUrlPolicy === "local" || isLoopback(url)) continue;
    throw new Error(
      `context key ${key}: must begin with https:// unless it is this machine or webhookUrlPolicy is local`,
    );
  }
}

/** The local service is its own issuer, under any webhook policy. */
const isLoopback = (url: string): boolean => ["127.0.0.1", "[::1]", "localhost"].includes(new URL(url).hostname);
