/** The schema of all settings, which are keys of the CDK context. `npm run settings` writes docs/settings.md from their descriptions. */
import * as z from "zod/mini";
import { HttpUrl, must, numeric, wholeNumber } from "../cli/command/accepted.ts";
import { presets } from "./capacity.ts";
import { consoleSettings } from "./console-settings.ts";
import { STAGE, STAGE_NAME } from "./names.ts";
import {
  LEAST_DAILY_DAYS,
  LEAST_IMPORT_FILE_DAYS,
  LEAST_MONTHLY_DAYS,
  LOG_DAYS,
  standardRetention,
} from "./retention.ts";
import { DOMAIN_NAME, FLAG, Flag, List, matching, OriginsOrAll, oneOf, settingTexts } from "./values.ts";

export const AllowedOrigins = z._default(OriginsOrAll, []);

/** The sender's address with or without a name, and the ARN of an SES identity, which ends with the verified address or domain. */
export const MAIL_FROM = /^(?:[^<>\r\n"]+ <[^\s<>@]+@([^\s<>@]+)>|[^\s<>@]+@([^\s<>@]+))$/;
export const SES_IDENTITY = /^arn:aws[a-z-]*:ses:[a-z0-9-]+:\d{12}:identity\/(\S+)$/;

export const TABLE_STREAM = /^(arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:\d{12}:table\/([\w.-]{3,255}))\/stream\/[0-9T:.-]+$/;

export const TableStream = matching(TABLE_STREAM, "the ARN of a table's stream");

/** Accepts 0, or days from `least` to ten years. The error message omits the upper limit. */
const daysOrNone = (least: number) =>
  z.optional(
    numeric(
      `0 or at least ${least}`,
      (days) => Number.isInteger(days) && (days === 0 || days >= least) && days <= 3_650,
    ),
  );

const count = (least: number, most: number) => z.optional(wholeNumber(least, most));

const address = {
  stage: matching(STAGE_NAME, STAGE).register(settingTexts, {
    description: "name of this deployment, such as `test`",
    default: "none",
    effect:
      "allows several deployments in one account. With `test`, the stacks are `Canvassing-test` and `Canvassing-test-Data`, and admin commands choose them by `--stage test`. A change of the name makes another, empty deployment",
    cost: "each deployment costs its own requests, storage, keys and alarms",
  }),
  domain: matching(DOMAIN_NAME, "a domain name in lower case").register(settingTexts, {
    description: "domain name of the API, such as `api.example.com`. Needs `certificate`",
    default: "none: clients use API Gateway's URL, which changes when the service is deployed anew",
    effect:
      "the API gets [a URL that stays the same](deploy.md#a-domain-of-your-own), even if the service is destroyed and deployed again. The deployment has the outputs `DomainTarget` and `DomainTargetZone` for the DNS record",
  }),
  certificate: matching(
    /^arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{12}:certificate\/[\w-]+$/,
    "the ARN of a certificate: arn:aws:acm:REGION:ACCOUNT:certificate/ID",
  ).register(settingTexts, {
    description:
      "ARN of the certificate of `domain` in AWS Certificate Manager, in the region and account of the deployment",
    default: "none; required with `domain`",
    effect: "a later change replaces the certificate without an interruption",
    cost: "none for a public certificate of ACM",
  }),
  basePath: matching(/^[A-Za-z0-9._-]{1,128}$/, "one part of a path, without slashes").register(settingTexts, {
    description: "first part of the path of all URLs of `domain`, such as `canvassing`",
    default: "none: the API has the whole domain",
    effect: "other APIs can use other paths of the domain. A later change breaks installed apps",
  }),
  defaultEndpoint: z.optional(Flag).register(settingTexts, {
    description: FLAG,
    default: "`false` with `domain`, otherwise `true`",
    effect: "with `true`, API Gateway's own URL answers beside `domain`: for apps that still use this URL",
  }),
};

const size = {
  preset: z._default(oneOf(presets), "small").register(settingTexts, {
    description: "`small` or `production`",
    effect:
      "decides [how the deployment uses the account's concurrency](deploy.md#concurrency). `small` fits a new account",
    cost: "`production` gives some functions more memory. A reservation is free",
  }),
  accountConcurrency: count(10, 1_000_000).register(settingTexts, {
    description: "the account's quota of concurrent executions",
    default: "10; 1000 with the preset `production`",
    effect:
      "`cdk synth` refuses reservations that exceed the quota. With less than 18, jobs change records slowly. If the account has several deployments, give each of them a part of the quota",
  }),
  deliverySenders: count(2, 1_000).register(settingTexts, {
    description: "the number of concurrent senders of webhooks",
    default: "2; 50 with the preset `production`",
    effect: "each sender sends up to ten messages. Each webhook may use a share of the senders",
    cost: "none: Lambda bills the time that senders work, however many there are",
  }),
  webAcl: z.optional(Flag).register(settingTexts, {
    description: FLAG,
    default: "`false`; `true` with the preset `production`",
    effect:
      "[AWS WAF](security.md#web-acl) refuses floods from one address, oversized requests and known attacks before API Gateway sees them",
    cost: "$9 a month and $0.60 for a million requests",
  }),
  companyRate: count(1, 1_000).register(settingTexts, {
    description:
      "the requests per second that each company may send, the same for all companies. There are 32 throttles, so some companies share one",
    default: "20; 200 with the preset `production`",
    effect: "API Gateway answers requests above it with 429, so that no company uses up the requests of the others",
  }),
  listMemory: count(1_024, 10_240).register(settingTexts, {
    description: "the memory of the function that lists prospects, in MB",
    default: "2048; 5120 with the preset `production`",
    effect:
      "with less memory, the function caches the indexes of fewer companies and gets less processor time, so some lists take longer. `3008` " +
      "fits an account whose [quota of memory](deploy.md#concurrency) AWS has not raised",
    cost: "Lambda bills memory multiplied by time, and more memory shortens the time",
  }),
  warmEnvironments: count(0, 100).register(settingTexts, {
    description:
      "the environments that Lambda keeps ready of each of three functions: lists, reads of one prospect, and creates",
    default: "0",
    effect:
      "fewer requests wait 0.3 s for a start. A deployment with one rep notices it at half of the lists, unless `canary` calls the functions; from 50 " +
      "reps on, hardly any request waits for a start ([latency](latency.md)). The setting needs a quota that leaves 100 executions unreserved. Change it in a " +
      "[deployment of its own](deploy.md#environments-that-are-kept-ready)",
    cost: "$61 a month for each with the preset `production`, of which lists take $44",
  }),
};

const users = {
  issuer: z.optional(HttpUrl).register(settingTexts, {
    description: "URL of an OpenID Connect issuer that marks access tokens by `token_use` or `typ: at+jwt`",
    default: "a new Cognito user pool",
    effect:
      "users sign in there, and the deployment makes no user pool. A change of the issuer gives all users a new identity",
    cost: "none here. A Cognito user pool costs money for each active user above its free tier",
  }),
  jwksUri: z.optional(HttpUrl).register(settingTexts, {
    description: "URL of the public keys of `issuer`",
    default: "the user pool's, or the one in the issuer's discovery document",
    effect: "saves the authorizer one request after each cold start",
  }),
  audience: z._default(List, []).register(settingTexts, {
    description: "accepted client ids or audiences of tokens, comma-separated",
    default: "the user pool's client; required with `issuer`",
    effect: "other clients of the same issuer may call the API too",
  }),
  mailFrom: matching(MAIL_FROM, "an address, or a name with one: Acme <no-reply@example.com>").register(settingTexts, {
    description:
      'sender of the mails of the user pool and of the mails about API keys: `"Acme <no-reply@example.com>"`. Needs `sesIdentity`',
    default: "Cognito's own sender, and no mails about API keys",
    effect:
      "invitations and password resets go through SES. Cognito's own sender sends about 50 mails a day. Admins also get a mail when a key is revoked, ends soon or loses its creator",
    cost: "SES's price for each mail",
  }),
  sesIdentity: matching(
    SES_IDENTITY,
    "the ARN of an identity: arn:aws:ses:REGION:ACCOUNT:identity/example.com",
  ).register(settingTexts, {
    description: "ARN of the verified address or domain of `mailFrom`",
    default: "none",
    effect: "SES sends only for a verified identity. The account must be out of the sandbox of SES",
  }),
};

const clients = {
  allowedOrigins: AllowedOrigins.register(settingTexts, {
    description: "browser origins, comma-separated, such as `https://app.example.com`; `*` for all origins",
    effect:
      "web pages of these origins may call the API, and may use the presigned URLs of the bucket. Apps on phones need no entry. " +
      "No other origin than the console's own can use the cookie of the console, even with `*`: other pages must send an access token",
    cost: "none: API Gateway bills a preflight like a request, and calls no function for it",
  }),
  webhookUrlPolicy: z._default(oneOf(["public", "local"]), "public").register(settingTexts, {
    description: "`public` or `local`",
    effect:
      "`local` also allows webhook URLs with http, addresses of this machine and private host names such as `crm.internal`. Use it for development only",
  }),
};

const existing = {
  table: matching(/^[\w.-]{3,255}$/, "the name of a table").register(settingTexts, {
    description: "name of a retained table. Needs `secretsKey`",
    default: "a new table",
    effect:
      "[adopts the table](deploy.md#adopt-existing-data). Keep the key afterwards: without it CloudFormation makes a new table",
  }),
  bucket: matching(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, "the name of a bucket").register(settingTexts, {
    description: "name of a retained bucket",
    default: "a new bucket",
    effect: "adopts the bucket. Keep the key afterwards",
  }),
  secretsKey: matching(
    /^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key\/[\w-]+$/,
    "the ARN of a key: arn:aws:kms:REGION:ACCOUNT:key/ID",
  ).register(settingTexts, {
    description: "ARN of the retained key of the webhook secrets. Needed with `table`",
    default: "a new key",
    effect:
      "the service uses the key and does not change it. Only this key can decrypt the secrets in a retained table. A deployment with `table` and without this key is refused.",
    cost: "none. A new key costs its monthly price at KMS",
  }),
  userPool: matching(/^[\w-]+_[0-9a-zA-Z]+$/, "the id of a user pool: eu-west-1_AbCdEfGhI").register(settingTexts, {
    description: "id of a retained user pool. Needs `userPoolClient`",
    default: "a new user pool",
    effect: "users keep their passwords. The deployment changes no setting of the pool",
  }),
  userPoolClient: matching(/^\w{1,128}$/, "the id of a client of the user pool").register(settingTexts, {
    description: "id of a client of `userPool`",
    default: "a new client",
    effect: "installed apps stay valid, because each contains this id",
  }),
};

const backups = {
  backupDailyDays: daysOrNone(LEAST_DAILY_DAYS).register(settingTexts, {
    description: "days for which AWS Backup keeps a daily copy of the table; 0 for none, otherwise at least 7",
    default: "0; 7 with the preset `production`",
    effect:
      "point-in-time recovery is always on and needs no copy (see `recoveryDays`). Copies survive a deletion of the table",
    cost: "each copy is a full one: 0.10 $ a month for each GB of the table and each day",
  }),
  backupMonthlyDays: daysOrNone(LEAST_MONTHLY_DAYS).register(settingTexts, {
    description: "days for which AWS Backup keeps a monthly copy of the table; 0 for none, otherwise at least 120",
    default: "0; 365 with the preset `production`",
    effect:
      "copies move to cold storage after 30 days. They contain [erased companies](keep.md#erase-a-company) until they expire",
    cost: "0.10 $ a month for each GB of the newest copy, 0.03 $ for each GB of the others",
  }),
  activeTableStream: TableStream.register(settingTexts, {
    description: "ARN of the stream of a restored table, which `npm run restore` prints",
    default: "the table of the data stack",
    effect:
      "[the service uses the restored table](keep.md#restore-the-whole-table). Without the key it uses its own table again",
    cost: "two tables are stored",
  }),
};

const retention = {
  logDays: z
    ._default(
      numeric(`one of ${LOG_DAYS.join(", ")}`, (days) => LOG_DAYS.includes(days)),
      standardRetention.logDays,
    )
    .register(settingTexts, {
      description: `days: one of ${LOG_DAYS.join(", ")}`,
      effect: "CloudWatch deletes older log lines of functions and requests. API Gateway's own log has at most 30 days",
      cost: "CloudWatch's price of stored logs",
    }),
  importFileDays: z
    ._default(wholeNumber(LEAST_IMPORT_FILE_DAYS, 3_650), standardRetention.importFileDays)
    .register(settingTexts, {
      description: "days: at least 15, because an import may wait for 14 days in a dead-letter queue",
      effect: "S3 deletes uploaded files, and reports of faulty rows, that are older",
      cost: "S3's price of stored files",
    }),
  recoveryDays: z._default(wholeNumber(1, 35), standardRetention.recoveryDays).register(settingTexts, {
    description: "days: 1 to 35",
    effect:
      "[point-in-time recovery](keep.md#restore-the-whole-table) reaches back this many days. Deleted data can be restored for as long",
    cost: "none: the price depends on the size of the table only",
  }),
};

const RUNBOOK = must("an address without # and blanks, of at most 300 characters");

const alarms = {
  alarmEmail: z.optional(z.email(must("an e-mail address"))).register(settingTexts, {
    description: "address that gets the alarms",
    default: "none, and `cdk synth` warns",
    effect:
      "SNS asks the address for a confirmation and sends alarms only after it. The topic of the output `AlarmTopic` accepts other subscriptions too",
    cost: "none: 1000 mails a month are free",
  }),
  runbook: z
    ._default(z.string(RUNBOOK).check(z.regex(/^[^\s#]{1,300}$/, RUNBOOK)), "docs/runbook.md")
    .register(settingTexts, {
      description: "address at which operators read [docs/runbook.md](runbook.md), such as its URL in your repository",
      effect: "the text of each alarm contains this address with the anchor of the alarm's part",
    }),
  canary: z.optional(Flag).register(settingTexts, {
    description: FLAG,
    default: "`true` with the preset `production`, otherwise `false`",
    effect:
      "a function runs the [smoke test](deploy.md#watch) every five minutes in a company of its own. An alarm goes off if it fails. `npm run canary -- create` makes the company",
    cost: "about $2 a month",
  }),
};

const TAGS = must(
  "1 to 40 tags with different keys, such as CostCenter=42, of letters, digits, blanks and _.:/=+-@, which do not begin with aws:",
);
/** A tag, whose key has at most 128 characters, and whose value at most 256. AWS reserves the prefix `aws:`. */
const TAG = /^(?!aws:)[\p{L}\p{N} _.:/+@-]{1,128}=[\p{L}\p{N} _.:/=+@-]{0,256}$/iu;

const keyAndValue = (tag: string): [string, string] => {
  const at = tag.indexOf("=");
  return [tag.slice(0, at), tag.slice(at + 1)];
};

const costs = {
  monthlyBudget: count(1, 1_000_000).register(settingTexts, {
    description: "dollars a month. Needs `alarmEmail`",
    default: "none",
    effect:
      "AWS Budgets sends a mail to `alarmEmail` in two cases: the costs of the whole account are above 80 % of this amount, or they will probably be above the amount at the end of the month",
  }),
  tags: z
    .optional(
      z.pipe(
        z.pipe(
          List,
          z.array(z.string().check(z.regex(TAG, TAGS))).check(
            z.minLength(1, TAGS),
            z.maxLength(40, TAGS),
            z.refine((tags) => new Set(tags.map((tag) => keyAndValue(tag)[0])).size === tags.length, TAGS),
          ),
        ),
        z.transform((tags) => Object.fromEntries(tags.map(keyAndValue))),
      ),
    )
    .register(settingTexts, {
      description: "tags of all resources, comma-separated, such as `CostCenter=42, Team=Field`",
      default: "none",
      effect:
        "CloudFormation gives them to each resource that can have tags. The bill shows them after you [activate](https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/activating-tags.html) them as cost allocation tags",
    }),
};

const release = {
  rollout: z.optional(oneOf(["canary", "at-once"])).register(settingTexts, {
    description: "`canary` or `at-once`",
    default: "`at-once`; `canary` with the preset `production`",
    effect:
      "with `canary`, new code of [the busiest functions](releasing.md#deploy-step-by-step) gets a tenth of the calls for five minutes. Errors undo the deployment. A deployment takes at least five minutes longer",
    cost: "none: CodeDeploy is free for Lambda",
  }),
};

const rehearsal = {
  timeScale: z
    ._default(
      numeric("a number above 0", (value) => value > 0 && Number.isFinite(value)),
      1,
    )
    .register(settingTexts, {
      description: "a number above 0",
      effect: "webhook delays, retries and debounce windows are this many times faster",
    }),
  serverTiming: z._default(Flag, false).register(settingTexts, {
    description: FLAG,
    effect:
      "adds a `Server-Timing` header with the table units and calls of each answer. The local service always does",
    cost: "some more bytes for each answer",
  }),
};

/** The headings in docs/settings.md, in this order, with their settings. */
export const topics = {
  "Name and address": address,
  Size: size,
  "Users and their mail": users,
  "Clients and webhooks": clients,
  Console: consoleSettings,
  Retention: retention,
  "Existing resources": existing,
  Backups: backups,
  Alarms: alarms,
  Costs: costs,
  Releases: release,
  "Rehearsal and development": rehearsal,
} as const;

export const Context = z.object({
  ...address,
  ...size,
  ...users,
  ...clients,
  ...consoleSettings,
  ...retention,
  ...existing,
  ...backups,
  ...alarms,
  ...costs,
  ...release,
  ...rehearsal,
});
export type Settings = z.output<typeof Context>;
