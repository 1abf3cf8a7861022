/** Reads the settings of a deployment from the CDK context. Each error message contains the wrong context key. */
import * as z from "zod/mini";
import type { Basemap } from "../edge/console-site.ts";
import { type Capacity, capacityOf } from "./capacity.ts";
import { basemapOf } from "./console-settings.ts";
import { Context, MAIL_FROM, SES_IDENTITY, TABLE_STREAM } from "./context.ts";
import { type Place, placeFaults } from "./place.ts";
import type { Retention } from "./retention.ts";
import { type BackupPlan, backupPlanOf } from "./retention.ts";

export interface DeployConfig {
  /** Distinguishes several deployments in one account. Undefined for the main one. */
  readonly stage?: string;
  /** The URL of the OpenID Connect issuer of access tokens. If it is undefined, the stack creates a Cognito user pool. */
  readonly issuer?: string;
  /** The URL of the issuer's public keys. If it is undefined, the authorizer finds it in the issuer's discovery document. */
  readonly jwksUri?: string;
  /** The client ids or audiences that access tokens may have, in addition to the client of the stack's user pool. */
  readonly audience: readonly string[];
  /** The sender in SES. Without it, Cognito itself sends the mails, at most about 50 per day for an account. */
  readonly mail?: { readonly from: string; readonly sesIdentity: string };
  /** Resources of an earlier deployment that the stacks use instead of creating new ones. */
  readonly adopted?: Adopted;
  /** Instead of the data stack's table. */
  readonly activeTable?: ActiveTable;
  /** Undefined means that no copies are created. */
  readonly backup?: BackupPlan;
  /** `local` also allows http and loopback addresses, for development. */
  readonly webhookUrlPolicy: "public" | "local";
  /** Delays, retry intervals and debounce windows are divided by this factor, which is above 1 in tests. */
  readonly timeScale: number;
  /** With `canary`, a new version of a function gets a tenth of the invocations for five minutes. */
  readonly rollout: "canary" | "at-once";
  readonly capacity: Capacity;
  /** A web ACL (AWS WAF) checks each request before API Gateway receives it. */
  readonly webAcl?: boolean;
  readonly retention: Retention;
  readonly alarmEmail?: string;
  /** Dollars. A mail to `alarmEmail` says that the costs of the account are near or above it. */
  readonly monthlyBudget?: number;
  /** AWS shows them on each resource and, if activated, in the bill. */
  readonly tags?: Readonly<Record<string, string>>;
  readonly watch: Watch;
  /** The console in the browser. If it is undefined, the deployment serves only the API. */
  readonly console?: Console;
  /** The API's own domain name. If it is undefined, clients use API Gateway's URL, which contains the id of the API. */
  readonly domain?: Domain;
  /** Origins whose web pages may call the API. An empty list disables CORS. */
  readonly allowedOrigins: readonly string[];
  /** The header `Server-Timing` shows how each request used the table. For development only. */
  readonly serverTiming: boolean;
}

export interface Watch {
  /** The description of each alarm contains it. */
  readonly runbook: string;
  /** A scheduled function runs the smoke test. */
  readonly canary: boolean;
}

export interface Console {
  /** The URL on this machine. Undefined in a deployment, where it is that of CloudFront or of the console's domain. */
  readonly localUrl?: string;
  /** The console's client id at an external issuer. If it is undefined, the stack creates a client in its user pool. */
  readonly clientId?: string;
  /** Undefined if the client has no secret. */
  readonly secretParameter?: string;
  /** The scopes that the console requests in addition to `openid`. */
  readonly scope?: string;
  /**
   * True if the stack creates the sign-in pages of an adopted user pool, false if it already has some. Undefined without an adopted pool.
   */
  readonly signInPages?: boolean;
  readonly basemap?: Basemap;
  /** The certificate must be in us-east-1. Without a domain, the console has a host name of CloudFront. */
  readonly domain?: { readonly name: string; readonly certificate: string };
}

export interface Domain {
  readonly name: string;
  /** The ARN of the ACM certificate. It must be in the region of the deployment. */
  readonly certificate: string;
  /** The first path segment of all URLs, without slashes. Without it, the API uses the whole domain. */
  readonly basePath?: string;
  /** The API is also available at API Gateway's own URL. */
  readonly keepsDefaultEndpoint: boolean;
}

export interface ActiveTable {
  readonly tableArn: string;
  readonly tableStreamArn: string;
}

export interface Adopted {
  readonly table?: string;
  readonly bucket?: string;
  /** Required with `table`, because only this KMS key can decrypt the webhook secrets in the table. */
  readonly secretsKey?: string;
  /**
   * The stack refers to the pool but does not manage it, because AWS chooses the id of a user pool, and CloudFormation cannot import it.
   */
  readonly userPool?: { readonly id: string; readonly clientId: string };
}

/** The CDK's own keys. Every other key must be a setting. */
export const CDK_KEY = /[:/]|^(?:acknowledged-issue-numbers|cli-telemetry)$/;

/**
 * Throws an error with each unknown context key and each invalid value. If a mistyped `table` were ignored, the deployment would begin with
 * an empty table. A resource outside of `place`, if known, is an error too.
 */
export function readConfig(context: Readonly<Record<string, unknown>>, place: Place = {}): DeployConfig {
  const known = new Set(Object.keys(Context.shape));
  const unknown = Object.keys(context).filter((key) => !CDK_KEY.test(key) && !known.has(key));
  const parsed = z.safeParse(Context, context);
  const faults = [
    ...unknown.map((key) => `context key ${key}: unknown${suggestion(key)}; docs/settings.md lists all settings`),
    ...(parsed.error?.issues ?? []).map((issue) => `context key ${String(issue.path[0])}: ${issue.message}`),
    ...(parsed.success ? placeFaults(parsed.data, place) : []),
  ];
  if (!parsed.success || faults.length > 0) throw new Error(faults.join("\n"));
  const { issuer, jwksUri, mailFrom, sesIdentity, table, bucket, secretsKey, userPool, userPoolClient, ...others } =
    parsed.data;
  const {
    stage,
    domain: domainName,
    certificate,
    basePath,
    defaultEndpoint,
    preset,
    accountConcurrency,
    deliverySenders,
    listMemory,
    warmEnvironments,
    companyRate,
    webAcl = preset === "production",
    alarmEmail,
    monthlyBudget,
    tags,
    runbook,
    backupDailyDays,
    backupMonthlyDays,
    activeTableStream,
    canary,
    logDays,
    importFileDays,
    recoveryDays,
    rollout,
    console: hasConsole,
    consoleDomain,
    consoleCertificate,
    consoleClient,
    consoleSecret,
    consoleScope,
    signInPages,
    basemapStyleUrl,
    basemapOrigins,
    ...rest
  } = others;
  const console = consoleOf(hasConsole, {
    consoleDomain,
    consoleCertificate,
    consoleClient,
    consoleSecret,
    consoleScope,
    signInPages,
    basemapStyleUrl,
    basemapOrigins,
  });
  const domain = domainOf({ domain: domainName, certificate, basePath, defaultEndpoint });
  const backup = backupPlanOf({ preset, dailyDays: backupDailyDays, monthlyDays: backupMonthlyDays });
  const activeTable = activeTableOf(activeTableStream);
  const mail = mailOf(mailFrom, sesIdentity);
  const adopted = adoptedOf({ table, bucket, secretsKey }, userPool, userPoolClient);
  const config: DeployConfig = {
    ...rest,
    capacity: capacityOf({ preset, accountConcurrency, deliverySenders, companyRate, listMemory, warmEnvironments }),
    ...(webAcl && { webAcl }),
    ...(stage !== undefined && { stage }),
    retention: { logDays, importFileDays, recoveryDays },
    watch: { runbook, canary: canary ?? preset === "production" },
    rollout: rollout ?? (preset === "production" ? "canary" : "at-once"),
    ...(domain !== undefined && { domain }),
    ...(console !== undefined && { console }),
    ...(backup !== undefined && { backup }),
    ...(activeTable !== undefined && { activeTable }),
    ...(alarmEmail !== undefined && { alarmEmail }),
    ...(monthlyBudget !== undefined && { monthlyBudget }),
    ...(tags !== undefined && { tags }),
    ...(issuer !== undefined && { issuer }),
    ...(jwksUri !== undefined && { jwksUri }),
    ...(mail !== undefined && { mail }),
    ...(adopted !== undefined && { adopted }),
  };
  assertConsistent(config);
  return config;
}

/** Differs only in case, in characters other than letters, or in an `s` at the end. */
function suggestion(key: string): string {
  const plain = (text: string): string =>
    text
      .replaceAll(/[^a-z]/gi, "")
      .toLowerCase()
      .replace(/s$/, "");
  const meant = Object.keys(Context.shape).find((name) => plain(name) === plain(key));
  return meant === undefined ? "" : `, perhaps ${meant}`;
}

function domainOf(given: {
  readonly domain: string | undefined;
  readonly certificate: string | undefined;
  readonly basePath: string | undefined;
  readonly defaultEndpoint: boolean | undefined;
}): Domain | undefined {
  const { domain: name, certificate, basePath, defaultEndpoint } = given;
  if (name === undefined) {
    const useless = Object.entries(given).find(([, value]) => value !== undefined);
    if (useless !== undefined) throw new Error(`context key ${useless[0]}: needs domain`);
    return undefined;
  }
  if (certificate === undefined) throw new Error("context key certificate: needed with domain");
  return {
    name,
    certificate,
    ...(basePath !== undefined && { basePath }),
    keepsDefaultEndpoint: defaultEndpoint ?? false,
  };
}

const consoleKeys = [
  ...["consoleDomain", "consoleCertificate", "consoleClient", "consoleSecret", "consoleScope"],
  ...["signInPages", "basemapStyleUrl", "basemapOrigins"],
] as const;

type ConsoleSettings = Pick<z.output<typeof Context>, (typeof consoleKeys)[number]>;

function consoleOf(hasConsole: boolean, given: ConsoleSettings): Console | undefined {
  const { consoleDomain: name, consoleCertificate: certificate } = given;
  const basemap = basemapOf(given.basemapStyleUrl, given.basemapOrigins, "context key basemapStyleUrl");
  const { consoleClient: clientId, consoleSecret: secretParameter, consoleScope: scope, signInPages } = given;
  if (!hasConsole) {
    const useless = consoleKeys.find((key) => given[key] !== undefined);
    if (useless !== undefined) throw new Error(`context key ${useless}: needs console`);
    return undefined;
  }
  if (name !== undefined && certificate === undefined) {
    throw new Error("context key consoleCertificate: needed with consoleDomain");
  }
  if (name === undefined && certificate !== undefined) {
    throw new Error("context key consoleDomain: needed with consoleCertificate");
  }
  if (secretParameter !== undefined && clientId === undefined) {
    throw new Error("context key consoleClient: needed with consoleSecret");
  }
  return {
    ...(name !== undefined && certificate !== undefined && { domain: { name, certificate } }),
    ...(clientId !== undefined && { clientId }),
    ...(secretParameter !== undefined && { secretParameter }),
    ...(scope !== undefined && { scope }),
    ...(signInPages !== undefined && { signInPages }),
    ...(basemap !== undefined && { basemap }),
  };
}

export function activeTableOf(tableStreamArn: string | undefined): ActiveTable | undefined {
  const [, tableArn] = TABLE_STREAM.exec(tableStreamArn ?? "") ?? [];
  return tableArn === undefined || tableStreamArn === undefined ? undefined : { tableArn, tableStreamArn };
}

/** The two keys are valid only together, because SES sends only for a verified identity. */
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
  if (table !== undefined && secretsKey === undefined) {
    throw new Error(
      "context key secretsKey: needed with table; a new key cannot decrypt the webhook secrets in the table",
    );
  }
  const adopted: Adopted = {
    ...(table !== undefined && { table }),
    ...(bucket !== undefined && { bucket }),
    ...(secretsKey !== undefined && { secretsKey }),
    ...(id !== undefined && clientId !== undefined && { userPool: { id, clientId } }),
  };
  return Object.keys(adopted).length === 0 ? undefined : adopted;
}

/** Throws an error with the context key of the wrong value. */
export function assertConsistent(config: DeployConfig): void {
  const { issuer, jwksUri, audience, mail, adopted, webhookUrlPolicy, console } = config;
  if (config.monthlyBudget !== undefined && config.alarmEmail === undefined) {
    throw new Error("context key alarmEmail: needed with monthlyBudget");
  }
  if (console !== undefined && issuer !== undefined && console.clientId === undefined) {
    throw new Error("context key consoleClient: needed with console and issuer");
  }
  if (console?.clientId !== undefined && issuer === undefined) {
    throw new Error("context key consoleClient: needs an issuer; the stack makes a client of its user pool");
  }
  if (console !== undefined && adopted?.userPool !== undefined && console.signInPages === undefined) {
    throw new Error(
      "context key signInPages: needed with console and userPool; set it to true to create the sign-in pages of the user pool, or to false " +
        "if the user pool already has a domain",
    );
  }
  if (console?.signInPages !== undefined && adopted?.userPool === undefined) {
    throw new Error("context key signInPages: needs userPool; the sign-in pages of a new user pool are always created");
  }
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

/** The local service is its own issuer, without https. */
const isLoopback = (url: string): boolean => ["127.0.0.1", "[::1]", "localhost"].includes(new URL(url).hostname);
