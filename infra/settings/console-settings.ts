/** The settings of the console, a topic of `context.ts`. */
import * as z from "zod/mini";
import { BasemapOrigins, BasemapStyleUrl, DOMAIN_NAME, FLAG, Flag, matching, settingTexts } from "./values.ts";

/** An operator may have set the secret itself instead of its name, so the error message does not repeat the value. */
const PARAMETER = "must be the name of a parameter: /canvassing/console-secret";

export const consoleSettings = {
  console: z._default(Flag, false).register(settingTexts, {
    description: FLAG,
    default: "`false`",
    effect:
      "[the console](deploy.md#the-console) in the browser, on the same address as the API. The deployment has the output `ConsoleUrl`. Build it before with `npm run console`; otherwise a page says that it is missing",
    cost: "CloudFront's price of requests and traffic; its free tier covers 10 million requests a month",
  }),
  consoleDomain: matching(DOMAIN_NAME, "a domain name in lower case").register(settingTexts, {
    description: "domain name of the console, such as `app.example.com`. Needs `consoleCertificate`",
    default: "a name of CloudFront, which stays the same until the stack is deleted",
    effect: "the DNS record of the name must point to the distribution. Browsers must then support TLS 1.2",
  }),
  consoleCertificate: matching(
    /^arn:aws[a-z-]*:acm:us-east-1:\d{12}:certificate\/[\w-]+$/,
    "the ARN of a certificate in us-east-1: arn:aws:acm:us-east-1:ACCOUNT:certificate/ID",
  ).register(settingTexts, {
    description: "ARN of the certificate of `consoleDomain`. CloudFront reads certificates in us-east-1 only",
    default: "none; required with `consoleDomain`",
    effect: "a later change replaces the certificate without an interruption",
    cost: "none for a public certificate of ACM",
  }),
  signInPages: z.optional(Flag).register(settingTexts, {
    description:
      "`true` if the deployment creates Cognito's sign-in pages of `userPool`; `false` if this user pool already has a domain for them",
    default: "none; required with `console` and `userPool`. The sign-in pages of a new user pool are always created",
    effect:
      "with `true`, the pages are deleted together with the service stack. Cognito refuses a second domain, and CloudFormation then undoes " +
      "the deployment. A change from `true` to `false` deletes the pages",
  }),
  consoleClient: matching(/^[\w.~:/?#&=,-]{1,255}$/, "a client id").register(settingTexts, {
    description: "id of the console's client at `issuer`, with the callback `https://…/api/session/callback`",
    default: "a client of the user pool; required with `issuer`",
    effect: "the issuer must support the authorization code flow with PKCE",
  }),
  consoleSecret: z
    .optional(z.string(PARAMETER).check(z.regex(/^\/[\w./-]{1,500}$/, PARAMETER)))
    .register(settingTexts, {
      description: "name of the SSM parameter (SecureString) with the secret of `consoleClient`",
      default: "none: a public client, which PKCE protects",
      effect: "the functions of the sign-in read the parameter. A warm function keeps the secret until it ends",
    }),
  consoleScope: matching(
    /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/,
    "scopes with blanks between",
  ).register(settingTexts, {
    description: "scopes that the console requests beside `openid`, with blanks between",
    default: "none. `offline_access` is added if the issuer supports it",
    effect: "some issuers need a scope of the API before they return a JWT as access token",
  }),
  consoleOffline: z.optional(Flag).register(settingTexts, {
    description: `${FLAG}. With \`false\`, the console has no service worker`,
    default: "`true`: the console starts without a connection",
    effect:
      "with `false`, each device removes its service worker when it next opens the console with a connection. What the field mode keeps on the device stays",
  }),
  basemapStyleUrl: BasemapStyleUrl.register(settingTexts, {
    description: "URL of a MapLibre style for the base map, or `none` for an outline of the land without internet",
    default: "[OpenFreeMap](https://openfreemap.org), without a key: its style Positron, and Dark on dark screens",
    effect:
      "the pages may also load from the origin of this URL. [What the provider learns](console.md#what-the-provider-of-the-map-learns)",
    cost: "none for OpenFreeMap, or the price of your provider",
  }),
  basemapOrigins: BasemapOrigins.register(settingTexts, {
    description: "origins with the tiles and icons of the style, comma-separated, such as `https://tiles.example.com`",
    default: "none: the style loads all of them from its own origin",
    effect: "the pages may also load from these origins. The map is incomplete if one is missing",
  }),
};
