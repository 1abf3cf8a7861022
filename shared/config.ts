/** The settings of a function, read from environment variables and validated at each use. */
import * as z from "zod/mini";
import { InvalidSetting } from "#shared/errors.ts";

const List = z.pipe(
  z.string(),
  z.transform((value) =>
    value
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== ""),
  ),
);

/** A URL. The schema is not `z.url()`, because that would add 2 KB to every bundle. */
const Url = z.string().check(z.refine((value) => URL.canParse(value)));

/** A function may lack the settings that it never reads. */
const settings = {
  TABLE_NAME: z.string().check(z.minLength(1)),
  BUCKET_NAME: z.string().check(z.minLength(1)),
  DELIVERY_QUEUE_URL: Url,
  POISON_RECORDS_URL: Url,
  IMPORT_QUEUE_URL: Url,
  EXPORT_QUEUE_URL: Url,
  BULK_QUEUE_URL: Url,
  /** Must equal the `iss` claim of the tokens. */
  ISSUER: Url,
  /** The URL of the issuer's key set (JWKS). If it is not set, a cold start reads the URL from the issuer's discovery document. */
  JWKS_URI: z.optional(Url),
  /** Client ids or audiences that an access token may have. */
  AUDIENCE: List.check(z.minLength(1)),
  /** The SSM parameter with the secret of the console's client, if it has one. */
  CONSOLE_SECRET_PARAMETER: z.optional(z.string().check(z.minLength(1))),
  /** Scopes that the console requests in addition to `openid`, separated by blanks. */
  CONSOLE_SCOPE: z.optional(z.string()),
  /** The prefix of API Gateway's API keys, which limit requests. A hash of the company's id follows, so companies may share a key. */
  THROTTLE_KEY_PREFIX: z.string().check(z.minLength(1)),
  /** The id of the Cognito user pool that creates invited users. It is not set for another identity provider. */
  USER_POOL_ID: z.optional(z.string().check(z.minLength(1))),
  /** The sender of mails, and the ARN of its identity in SES. Without them, no mail is sent. */
  MAIL_FROM: z.optional(z.string()),
  SES_IDENTITY: z.optional(z.string()),
  SECRETS_KEY_ARN: z.string().check(z.minLength(1)),
  /** `local` permits webhooks to http and loopback addresses. Use it only for development. */
  WEBHOOK_URL_POLICY: z.enum(["public", "local"]),
  /** Maximum concurrent executions of the deliverer. The minimum is 2, because one webhook may never use all of them. */
  DELIVERY_SENDERS: z.pipe(z.pipe(z.string(), z.transform(Number)), z.int().check(z.minimum(2))),
  CHANGES_AT_ONCE: z.optional(z.pipe(z.pipe(z.string(), z.transform(Number)), z.int().check(z.minimum(1)))),
  /** Delays of deliveries, and the times between retries, are divided by this factor. It is greater than 1 only in tests. */
  TIME_SCALE: z.pipe(z.pipe(z.string(), z.transform(Number)), z.number().check(z.positive())),
} as const;

export type UrlPolicy = z.infer<typeof settings.WEBHOOK_URL_POLICY>;

export function setting<Name extends keyof typeof settings>(name: Name): z.infer<(typeof settings)[Name]>;
export function setting(name: keyof typeof settings): unknown {
  const parsed = z.safeParse(settings[name], process.env[name]);
  if (!parsed.success) throw new InvalidSetting(`the environment variable ${name} is missing or not valid`);
  return parsed.data;
}
