/** Reads the settings of a deployment from the CDK context. */
import * as z from "zod/mini";
import { nearestOf } from "#shared/nearest.ts";
import { type Basemap, basemapOf } from "../edge/console-site.ts";
import { type Capacity, capacityOf } from "./capacity.ts";
import { Context, type Settings, TABLE_STREAM } from "./context.ts";
import { type Place, placeFaults } from "./place.ts";
import { type BackupPlan, backupPlanOf, type Retention } from "./retention.ts";
import { ruleFaults } from "./rules.ts";

type Unchanged = Pick<
  Settings,
  | ("stage" | "issuer" | "jwksUri" | "audience" | "webhookUrlPolicy" | "timeScale")
  | ("allowedOrigins" | "serverTiming" | "alarmEmail" | "monthlyBudget" | "tags")
>;

export interface DeployConfig extends Readonly<Unchanged> {
  /** The sender in SES. Without it, Cognito itself sends the mails, at most about 50 per day for an account. */
  readonly mail?: { readonly from: string; readonly sesIdentity: string } | undefined;
  readonly adopted?: Adopted | undefined;
  readonly activeTable?: ActiveTable | undefined;
  readonly backup?: BackupPlan | undefined;
  readonly rollout: "canary" | "at-once";
  readonly capacity: Capacity;
  readonly webAcl?: boolean | undefined;
  readonly retention: Retention;
  readonly watch: Watch;
  /** Without a console, the deployment serves only the API. */
  readonly console?: Console | undefined;
  /** Without a domain, clients use API Gateway's URL, which contains the id of the API. */
  readonly domain?: Domain | undefined;
}

export interface Watch {
  /** The address of the runbook, which the description of each alarm contains. */
  readonly runbook: string;
  readonly canary: boolean;
}

export interface Console {
  /** The console's URL in the local service. Undefined in a deployment, which has the URL of CloudFront or of the console's domain. */
  readonly localUrl?: string | undefined;
  /** The console's client id at an external issuer. If it is undefined, the stack creates a client in its user pool. */
  readonly clientId?: string | undefined;
  readonly secretParameter?: string | undefined;
  readonly scope?: string | undefined;
  /** True if the stack creates the sign-in pages of an adopted user pool. Undefined without an adopted pool. */
  readonly signInPages?: boolean | undefined;
  readonly basemap?: Basemap | undefined;
  readonly offline?: boolean | undefined;
  readonly domain?: { readonly name: string; readonly certificate: string } | undefined;
}

export interface Domain {
  readonly name: string;
  readonly certificate: string;
  readonly basePath?: string | undefined;
  /** True if the API is also available at API Gateway's own URL. */
  readonly keepsDefaultEndpoint: boolean;
}

export interface ActiveTable {
  readonly tableArn: string;
  readonly tableStreamArn: string;
}

interface Adopted {
  readonly table?: string | undefined;
  readonly bucket?: string | undefined;
  /** Required with `table`, because only this KMS key can decrypt the webhook secrets in the table. */
  readonly secretsKey?: string | undefined;
  /** CloudFormation cannot import a user pool, because AWS chooses its id. So the stack refers to the pool and does not manage it. */
  readonly userPool?: { readonly id: string; readonly clientId: string } | undefined;
}

/** Keys of the CDK context that belong to the CDK itself. Every other key must be a setting. */
export const CDK_KEY = /[:/]|^(?:acknowledged-issue-numbers|cli-telemetry)$/;

/**
 * Throws an error with each unknown key and each invalid value. If a mistyped `table` were ignored, the deployment would begin with an
 * empty table. If the region or the account in `place` is known, a resource in another one is an error too.
 */
export function readConfig(context: Readonly<Record<string, unknown>>, place: Place = {}): DeployConfig {
  const known = new Set(Object.keys(Context.shape));
  const unknown = Object.keys(context).filter((key) => !CDK_KEY.test(key) && !known.has(key));
  const parsed = z.safeParse(Context, context);
  const faults = [
    ...unknown.map((key) => `${key}: unknown${suggestion(key)}; docs/settings.md lists all settings`),
    ...(parsed.error?.issues ?? []).map((issue) => `${String(issue.path[0])}: ${issue.message}`),
    ...(parsed.success ? [...placeFaults(parsed.data, place), ...ruleFaults(parsed.data)] : []),
  ];
  if (!parsed.success || faults.length > 0) throw new Error(faults.map((fault) => `context key ${fault}`).join("\n"));
  return configOf(parsed.data);
}

function configOf(settings: Settings): DeployConfig {
  const { stage, issuer, jwksUri, audience, webhookUrlPolicy, timeScale, allowedOrigins, serverTiming } = settings;
  const { alarmEmail, monthlyBudget, tags, runbook, mailFrom: from, sesIdentity } = settings;
  const { logDays, importFileDays, recoveryDays } = settings;
  const isProduction = settings.preset === "production";
  return {
    ...{ stage, issuer, jwksUri, audience, webhookUrlPolicy, timeScale, allowedOrigins, serverTiming },
    ...{ alarmEmail, monthlyBudget, tags },
    mail: from !== undefined && sesIdentity !== undefined ? { from, sesIdentity } : undefined,
    adopted: adoptedOf(settings),
    activeTable: activeTableOf(settings.activeTableStream),
    backup: backupPlanOf(settings),
    capacity: capacityOf(settings),
    webAcl: settings.webAcl ?? isProduction,
    retention: { logDays, importFileDays, recoveryDays },
    watch: { runbook, canary: settings.canary ?? isProduction },
    rollout: settings.rollout ?? (isProduction ? "canary" : "at-once"),
    console: settings.console ? consoleOf(settings) : undefined,
    domain: domainOf(settings),
  };
}

function suggestion(key: string): string {
  const meant = nearestOf(key, Object.keys(Context.shape));
  return meant === undefined ? "" : `, perhaps ${meant}`;
}

function domainOf({ domain: name, certificate, basePath, defaultEndpoint = false }: Settings): Domain | undefined {
  if (name === undefined || certificate === undefined) return undefined;
  return { name, certificate, basePath, keepsDefaultEndpoint: defaultEndpoint };
}

function consoleOf(settings: Settings): Console {
  const { consoleDomain: name, consoleCertificate: certificate, basemapStyleUrl } = settings;
  return {
    domain: name !== undefined && certificate !== undefined ? { name, certificate } : undefined,
    clientId: settings.consoleClient,
    secretParameter: settings.consoleSecret,
    scope: settings.consoleScope,
    signInPages: settings.signInPages,
    basemap: basemapOf(basemapStyleUrl, settings.basemapOrigins),
    offline: settings.consoleOffline,
  };
}

export function activeTableOf(tableStreamArn: string | undefined): ActiveTable | undefined {
  const [, tableArn] = TABLE_STREAM.exec(tableStreamArn ?? "") ?? [];
  return tableArn === undefined || tableStreamArn === undefined ? undefined : { tableArn, tableStreamArn };
}

function adoptedOf({ table, bucket, secretsKey, userPool: id, userPoolClient: clientId }: Settings): Adopted {
  const userPool = id !== undefined && clientId !== undefined ? { id, clientId } : undefined;
  return { table, bucket, secretsKey, userPool };
}
