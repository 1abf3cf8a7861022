/** The rules about settings that depend on other settings. */
import { MAIL_FROM, SES_IDENTITY, type Settings } from "./context.ts";

type Key = keyof Settings;

/** Returns the fault as a text that begins with the key to correct. Any other result means that there is no fault. */
type Rule = (settings: Settings) => string | boolean | undefined;

const neededWith =
  (missing: Key, given: Key, why = ""): Rule =>
  (settings) =>
    settings[given] !== undefined && settings[missing] === undefined && `${missing}: needed with ${given}${why}`;

/** Returns the rule for a setting `key` that has no effect without the setting `base`. */
const needs =
  (base: Key) =>
  (key: Key): Rule =>
  (settings) =>
    settings[key] !== undefined && (settings[base] ?? false) === false && `${key}: needs ${base}`;

const consoleKeys = [
  ...["consoleDomain", "consoleCertificate", "consoleClient", "consoleSecret", "consoleScope"],
  ...["signInPages", "basemapStyleUrl", "basemapOrigins", "consoleOffline"],
] as const satisfies readonly Key[];

const rules: readonly Rule[] = [
  neededWith("certificate", "domain"),
  ...(["certificate", "basePath", "defaultEndpoint"] as const).map(needs("domain")),
  ...consoleKeys.map(needs("console")),
  neededWith("consoleCertificate", "consoleDomain"),
  neededWith("consoleDomain", "consoleCertificate"),
  neededWith("consoleClient", "consoleSecret"),
  neededWith("basemapStyleUrl", "basemapOrigins"),
  neededWith("mailFrom", "sesIdentity"),
  neededWith("sesIdentity", "mailFrom"),
  neededWith("userPool", "userPoolClient"),
  neededWith("userPoolClient", "userPool"),
  neededWith("secretsKey", "table", "; a new key cannot decrypt the webhook secrets in the table"),
  neededWith("alarmEmail", "monthlyBudget"),
  ({ console, issuer, consoleClient }) =>
    console && issuer !== undefined && consoleClient === undefined && "consoleClient: needed with console and issuer",
  ({ issuer, consoleClient }) =>
    consoleClient !== undefined &&
    issuer === undefined &&
    "consoleClient: needs an issuer; the stack makes a client of its user pool",
  ({ console, userPool, signInPages }) =>
    console &&
    userPool !== undefined &&
    signInPages === undefined &&
    "signInPages: needed with console and userPool; set it to true to create the sign-in pages of the user pool, or to false if the user " +
      "pool already has a domain",
  ({ userPool, signInPages }) =>
    signInPages !== undefined &&
    userPool === undefined &&
    "signInPages: needs userPool; the sign-in pages of a new user pool are always created",
  ({ issuer, mailFrom }) =>
    issuer !== undefined &&
    mailFrom !== undefined &&
    "mailFrom: an issuer of your own sends its mail itself; leave out mailFrom and sesIdentity",
  ({ issuer, userPool }) =>
    issuer !== undefined && userPool !== undefined && "userPool: conflicts with issuer; leave out one of the two",
  ({ mailFrom, userPool }) =>
    mailFrom !== undefined && userPool !== undefined && "mailFrom: an adopted user pool keeps its sender",
  ({ issuer, audience }) =>
    issuer !== undefined &&
    audience.length === 0 &&
    "audience: needed with an issuer; otherwise any client of the issuer could sign in",
  ({ issuer, jwksUri }) =>
    jwksUri !== undefined &&
    issuer === undefined &&
    "jwksUri: needs an issuer; the stack's own user pool has a documented address of its keys",
  withHttps("issuer"),
  withHttps("jwksUri"),
  knownSender,
];

export const ruleFaults = (settings: Settings): string[] =>
  rules.map((rule) => rule(settings)).filter((fault) => typeof fault === "string");

function withHttps(key: "issuer" | "jwksUri"): Rule {
  return ({ [key]: url, webhookUrlPolicy }) =>
    url !== undefined &&
    !url.startsWith("https://") &&
    webhookUrlPolicy !== "local" &&
    `${key}: must begin with https:// unless webhookUrlPolicy is local`;
}

/** Returns a fault for a sender that SES refuses. SES accepts a verified address, and all addresses of a verified domain or subdomain. */
function knownSender({ mailFrom = "", sesIdentity = "" }: Settings): string | false {
  const [, named, bare = named] = MAIL_FROM.exec(mailFrom.toLowerCase()) ?? [];
  const [, verified] = SES_IDENTITY.exec(sesIdentity.toLowerCase()) ?? [];
  if (bare === undefined || verified === undefined) return false;
  const isItsAddress = mailFrom.toLowerCase().replace(/^.*<|>$/g, "") === verified;
  const isOfItsDomain = bare === verified || bare.endsWith(`.${verified}`);
  return (
    !isItsAddress && !isOfItsDomain && `mailFrom: ${mailFrom} is neither the identity ${verified} nor of its domain`
  );
}
