/** The environment of a function, parsed once when it is first needed. */
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

/** Settings are read one by one: a function has only those that it needs, and says which one it misses. */
const settings = {
  TABLE_NAME: z.string().check(z.minLength(1)),
  /** Where files are kept. */
  BUCKET_NAME: z.string().check(z.minLength(1)),
  DELIVERY_QUEUE_URL: z.url(),
  PARKED_RECORDS_URL: z.url(),
  IMPORT_QUEUE_URL: z.url(),
  EXPORT_QUEUE_URL: z.url(),
  /** OpenID Connect issuer, exactly as tokens name it. */
  ISSUER: z.url(),
  /** Where the issuer's keys are; without it its discovery document says so, which is one fetch more at the start of the authorizer. */
  JWKS_URI: z.optional(z.url()),
  /** Client ids or audiences that access tokens may be made out to. */
  AUDIENCE: List.check(z.minLength(1)),
  /** Where new users are invited; not set where the issuer is not the deployment's own. */
  USER_POOL_ID: z.optional(z.string().check(z.minLength(1))),
  /** The key of the key service that data keys are wrapped with. */
  SECRETS_KEY_ARN: z.string().check(z.minLength(1)),
  /** `local` also permits http and loopback receivers: for development only. */
  WEBHOOK_URL_POLICY: z.enum(["public", "local"]),
  /** Functions that send at once: each webhook gets a share of them. */
  DELIVERY_SENDERS: z.pipe(z.pipe(z.string(), z.transform(Number)), z.int().check(z.minimum(2))),
  /** Delays, retry gaps and windows pass this many times faster. */
  TIME_SCALE: z.pipe(z.pipe(z.string(), z.transform(Number)), z.number().check(z.positive())),
} as const;

export type UrlPolicy = z.infer<typeof settings.WEBHOOK_URL_POLICY>;

export function setting<Name extends keyof typeof settings>(name: Name): z.infer<(typeof settings)[Name]>;
export function setting(name: keyof typeof settings): unknown {
  const parsed = z.safeParse(settings[name], process.env[name]);
  if (!parsed.success) throw new Error(`the environment variable ${name} is missing or not valid`);
  return parsed.data;
}
