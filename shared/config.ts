/** The settings of a function, read from environment variables and validated at each use. */
import * as z from "zod/mini";

const List = z.pipe(
  z.string(),
  z.transform((value) =>
    value
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== ""),
  ),
);

/** Each function reads only the settings that it needs. The error message names the missing setting. */
const settings = {
  TABLE_NAME: z.string().check(z.minLength(1)),
  /** The name of the bucket for uploads, exports and import reports. */
  BUCKET_NAME: z.string().check(z.minLength(1)),
  DELIVERY_QUEUE_URL: z.url(),
  PARKED_RECORDS_URL: z.url(),
  IMPORT_QUEUE_URL: z.url(),
  EXPORT_QUEUE_URL: z.url(),
  /** The URL of the OpenID Connect issuer, exactly as the tokens name it. */
  ISSUER: z.url(),
  /**
   * The address of the issuer's keys. If it is not set, the authorizer reads it from the discovery document, which costs one more request
   * when the function starts.
   */
  JWKS_URI: z.optional(z.url()),
  /** The accepted client ids or audiences of access tokens. */
  AUDIENCE: List.check(z.minLength(1)),
  /** The id of the user pool for invitations. It is not set for an external issuer. */
  USER_POOL_ID: z.optional(z.string().check(z.minLength(1))),
  /** The ARN of the KMS key that wraps data keys. */
  SECRETS_KEY_ARN: z.string().check(z.minLength(1)),
  /** The value `local` also permits http and loopback receivers. It is for development only. */
  WEBHOOK_URL_POLICY: z.enum(["public", "local"]),
  /** The largest number of delivery functions that run concurrently. Each webhook gets a share of this number. */
  DELIVERY_SENDERS: z.pipe(z.pipe(z.string(), z.transform(Number)), z.int().check(z.minimum(2))),
  /** The factor by which delays, retry gaps and debounce windows are shortened. It is 1 in a deployment. */
  TIME_SCALE: z.pipe(z.pipe(z.string(), z.transform(Number)), z.number().check(z.positive())),
} as const;

export type UrlPolicy = z.infer<typeof settings.WEBHOOK_URL_POLICY>;

export function setting<Name extends keyof typeof settings>(name: Name): z.infer<(typeof settings)[Name]>;
export function setting(name: keyof typeof settings): unknown {
  const parsed = z.safeParse(settings[name], process.env[name]);
  if (!parsed.success) throw new Error(`the environment variable ${name} is missing or not valid`);
  return parsed.data;
}
