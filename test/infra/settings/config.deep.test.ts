/**
 * Tests where the settings of a deployment come from, their defaults, and the messages with which `cdk synth` refuses settings. An operator
 * must see the key, the given value, and what is accepted.
 */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { capacityOf } from "../../../infra/settings/capacity.ts";
import { readConfig } from "../../../infra/settings/config.ts";
import { Context } from "../../../infra/settings/context.ts";
import { main as settings } from "../../../infra/settings/document.ts";
import { readDeployment } from "../../../infra/settings/settings-file.ts";

const read = (context: Readonly<Record<string, unknown>>) => () => readConfig(context);
const ID = "1234abcd-12ab-34cd-56ef-1234567890ab";

it("docs/settings.md has the tables that `npm run settings` writes", async () => {
  expect(await settings(["--check"])).toBe(0);
});

describe("a value that a setting does not accept", () => {
  it.each(Object.keys(Context.shape))("is in the message about %s, with the key and what is accepted", (key) => {
    const message = new RegExp(`^context key ${key}: must be [^\\n]+, and not \\{\\}$`, "m");
    const hidden = /^context key consoleSecret: must be the name of a parameter: [^\n]+$/m;
    expect(read({ [key]: {} })).toThrow(key === "consoleSecret" ? hidden : message);
    expect(read({ [key]: null })).toThrow(`context key ${key}: must be `);
  });

  const url = "a URL that begins with http:// or https://";
  const origin = "an origin such as https://app.example.com";
  it.each([
    ["accountConcurrency", "a whole number from 10 to 1000000", "abc"],
    ["accountConcurrency", "a whole number from 10 to 1000000", "5"],
    ["importFileDays", "a whole number from 15 to 3650", "14"],
    ["recoveryDays", "a whole number from 1 to 35", 1.5],
    ["recoveryDays", "a whole number from 1 to 35", "36"],
    ["timeScale", "a number above 0", "fast"],
    ["timeScale", "a number above 0", "Infinity"],
    ["timeScale", "a number above 0", "0"],
    ["preset", "small or production", "Small"],
    ["rollout", "canary or at-once", "slow"],
    ["webhookUrlPolicy", "public or local", "open"],
    ["issuer", url, "id.example.com"],
    ["jwksUri", url, " https://id.example.com/keys"],
    ["basemapStyleUrl", `${url}, or none`, "javascript:alert(1)"],
    ["consoleDomain", "a domain name in lower case", "app example"],
    ["allowedOrigins", `${origin}, or *`, "https://app.example.com/"],
    ["basemapOrigins", origin, "*"],
    ["backupDailyDays", "0 or at least 7", "3"],
    ["backupMonthlyDays", "0 or at least 120", "90"],
  ])("of %s is refused with what is accepted: %s", (key, accepted, value) => {
    const message = `context key ${key}: must be ${accepted}, and not ${JSON.stringify(value)}`;
    expect(read({ [key]: value })).toThrow(new Error(message));
  });

  it("is named alone if it is one of several in a list", () => {
    expect(read({ allowedOrigins: "https://a.example.com, app" })).toThrow(
      new Error(`context key allowedOrigins: must be ${origin}, or *, and not "app"`),
    );
  });

  it("is named for logDays together with the days that CloudWatch accepts", () => {
    expect(read({ logDays: "abc" })).toThrow(/^context key logDays: must be one of 1, 3, 5, .*, 1827, and not "abc"$/);
  });

  it("is shortened in the message if it is long", () => {
    expect(read({ stage: "x".repeat(10_000) })).toThrow(/, and not "x{99}…$/);
  });

  it("is not in the message about consoleSecret, because an operator may have given the secret itself", () => {
    expect(read({ consoleSecret: "hunter2" })).toThrow(
      new Error("context key consoleSecret: must be the name of a parameter: /canvassing/console-secret"),
    );
  });

  it.each(["", " ", "1e3", "0x20", " 20 ", "20,5", "-20", "+20"])("is %j for a number", (value) => {
    for (const key of ["accountConcurrency", "logDays", "importFileDays", "timeScale"]) {
      expect(read({ [key]: value })).toThrow(`context key ${key}: must be `);
    }
  });
});

describe("settings that do not fit together or have no valid form", () => {
  const [userPool, userPoolClient] = ["eu-west-1_AbCdEfGhI", "1a2b3c4d5e"];
  const sesIdentity = "arn:aws:ses:eu-west-1:123456789012:identity/example.com";
  const certificate = "arn:aws:acm:eu-west-1:123456789012:certificate/1234abcd";
  const domain = { domain: "api.example.com", certificate, basePath: "canvassing" };
  const issued = { issuer: "https://id.example.com", audience: "web" };
  const mail = { mailFrom: "a@example.com", sesIdentity };

  it.each([
    [{ issuer: "not a url", audience: "web" }, "issuer"],
    [{ issuer: "http://id.example.com", audience: "web" }, "issuer: must begin with https"],
    [{ issuer: "https://id.example.com" }, "audience"],
    [{ mailFrom: "nobody", sesIdentity }, "mailFrom: must be an address"],
    [{ mailFrom: "a@example.com\r\nBcc: b@x.test", sesIdentity }, "mailFrom: must be an address"],
    [{ mailFrom: "a@example.com", sesIdentity: "example.com" }, "sesIdentity: must be the ARN"],
    [{ mailFrom: "a@example.com" }, "sesIdentity: needed with mailFrom"],
    [{ sesIdentity }, "mailFrom: needed with sesIdentity"],
    [{ mailFrom: "a@notexample.com", sesIdentity }, "mailFrom: a@notexample.com is neither"],
    [{ ...mail, ...issued }, "mailFrom: an issuer"],
    [{ deliverySenders: "1" }, "deliverySenders"],
    [{ deliverySenders: "3" }, "deliverySenders: 3 senders and 6 jobs leave fewer than 2 of the account's 10"],
    [{ alarmEmail: "nobody" }, "alarmEmail: must be an e-mail address"],
    [{ table: "a b" }, "table: must be the name of a table"],
    [{ table: "Left", bucket: "left" }, "secretsKey: needed with table; a new key cannot decrypt"],
    [{ bucket: "Upper" }, "bucket: must be the name of a bucket"],
    [{ secretsKey: "alias/mine" }, "secretsKey: must be the ARN of a key"],
    [{ userPool: "AbCdEfGhI", userPoolClient: "1a" }, "userPool: must be the id"],
    [{ userPool }, "userPoolClient: needed with userPool"],
    [{ userPoolClient }, "userPool: needed with userPoolClient"],
    [{ userPool, userPoolClient, ...issued }, "userPool: conflicts with issuer"],
    [{ userPool, userPoolClient, ...mail }, "mailFrom: an adopted user pool keeps its sender"],
    [{ consoleDomain: "app.example.com" }, "consoleDomain: needs console"],
    [{ console: true, consoleDomain: "app.example.com" }, "consoleCertificate: needed"],
    [{ console: true, consoleSecret: "/x" }, "consoleClient: needed"],
    [{ console: true, ...issued }, "consoleClient: needed"],
    [{ console: true, consoleClient: "web" }, "consoleClient: needs an issuer"],
    [{ console: true, basemapOrigins: "https://tiles.example.com" }, "basemapStyleUrl: needed"],
    [{ basemapStyleUrl: "https://maps.example.com/s.json" }, "basemapStyleUrl: needs console"],
    [{ console: true, userPool, userPoolClient }, "signInPages: needed with console and userPool"],
    [{ console: true, signInPages: "true" }, "signInPages: needs userPool"],
    [{ signInPages: "true" }, "signInPages: needs console"],
    [{ console: true, consoleCertificate: certificate, consoleDomain: "a.example.com" }, "us-east-1"],
    [{ ...domain, certificate: undefined }, "certificate: needed with domain"],
    [{ certificate }, "certificate: needs domain"],
    [{ basePath: "a" }, "basePath: needs domain"],
    [{ defaultEndpoint: "false" }, "defaultEndpoint: needs domain"],
    [{ ...domain, basePath: "/a" }, "basePath: must be one part"],
    [{ ...domain, domain: "https://api.example.com" }, "domain: must be a domain name"],
    [{ ...domain, domain: "API.example.com" }, "domain: must be a domain name"],
    [{ ...domain, certificate: "mine" }, "certificate: must be the ARN"],
    [{ activeTableStream: "arn:aws:dynamodb:eu-west-1:123456789012:table/T" }, "must be the ARN of a table's stream"],
  ])("%j are refused, and the error names the key", (context, fault) => {
    expect(read(context)).toThrow(fault);
  });
});

describe("an unknown key", () => {
  it.each(["größe", ""])("%j is refused", (key) => {
    expect(read({ [key]: "x" })).toThrow(new Error(`context key ${key}: unknown; docs/settings.md lists all settings`));
  });

  it.each([
    ["tabel", "table"],
    ["webacl", "webAcl"],
    ["alarm-email", "alarmEmail"],
    ["ALARM_EMAIL", "alarmEmail"],
    ["alarm email", "alarmEmail"],
    [" stage", "stage"],
    ["--stage", "stage"],
  ])("%s is answered with the setting that the operator means", (key, meant) => {
    expect(read({ [key]: "x" })).toThrow(
      `context key ${key}: unknown, perhaps ${meant}; docs/settings.md lists all settings`,
    );
  });

  it("of the CDK is accepted", () => {
    const keys = ["aws:cdk:enable-path-metadata", "@aws-cdk/core:flag", "acknowledged-issue-numbers", "cli-telemetry"];
    for (const key of [...keys, "availability-zones:account=123456789012:region=eu-west-1"]) {
      expect(read({ [key]: true })).not.toThrow();
    }
  });
});

describe("true and false", () => {
  const flags = ["defaultEndpoint", "webAcl", "console", "canary", "serverTiming"];

  it.each(flags)("are the only values of %s, as text and in JSON", (key) => {
    const domain =
      key === "defaultEndpoint" ? { domain: "api.example.com", certificate: arn("acm", "certificate") } : {};
    for (const value of [true, false, "true", "false"]) expect(read({ ...domain, [key]: value })).not.toThrow();
    for (const value of ["yes", "no", "TRUE", "True", "1", "0", "on", "off", "enabled", "", 1, 0, " true"]) {
      expect(read({ ...domain, [key]: value })).toThrow(
        `context key ${key}: must be true or false, and not ${JSON.stringify(value)}`,
      );
    }
  });
});

const arn = (service: string, type: string, place = "eu-west-1:123456789012"): string =>
  `arn:aws:${service}:${place}:${type}/${ID}`;

it.each([
  [{ preset: "small", warmEnvironments: "1" }, "warmEnvironments", 3, 10, 103],
  [{ preset: "production", accountConcurrency: "345", warmEnvironments: 2 }, "warmEnvironments", 246, 345, 346],
  [{ preset: "production", accountConcurrency: 339 }, "accountConcurrency", 240, 339, 340],
  [{ preset: "production", deliverySenders: 900 }, "deliverySenders", 1_090, 1_000, 1_190],
])("reserved concurrency of %j that does not fit is blamed on %s", (context, key, sum, account, least) => {
  expect(read(context)).toThrow(
    new Error(
      `context key ${key}: the settings reserve ${sum} of the account's ${account} concurrent executions, and Lambda requires 100 unreserved; ` +
        `reserve fewer, or set accountConcurrency to the account's quota if it is at least ${least}`,
    ),
  );
});

it("warm environments may take all but 100 executions", () => {
  expect(read({ preset: "small", accountConcurrency: 103, warmEnvironments: 1 })).not.toThrow();
});

describe("a resource of another region or account than the deployment", () => {
  const place = { region: "eu-west-1", account: "123456789012" };
  const domain = (certificate: string) => ({ domain: "api.example.com", certificate });
  const console = (consoleCertificate: string) => ({
    ...{ console: "true", consoleDomain: "app.example.com" },
    consoleCertificate,
  });
  const stream = (at: string) => `arn:aws:dynamodb:${at}:table/Canvassing-restored/stream/2026-11-22T10:00:00.000`;
  const pool = (userPool: string) => ({ userPool, userPoolClient: "left" });
  const [there, foreign] = ["us-east-2:123456789012", "eu-west-1:999999999999"];

  it.each([
    ["certificate", domain(arn("acm", "certificate", there))],
    ["secretsKey", { secretsKey: arn("kms", "key", there) }],
    ["activeTableStream", { activeTableStream: stream(there) }],
    ["userPool", pool("us-east-2_AbCdEfGhI")],
  ])("is refused in %s, with the region found and the region expected", (key, context) => {
    const remedy = "name a resource in eu-west-1, or set AWS_REGION=us-east-2 to deploy there";
    expect(() => readConfig(context, place)).toThrow(
      new Error(`context key ${key}: its region is us-east-2, and the deployment's region is eu-west-1; ${remedy}`),
    );
    expect(() => readConfig(context, { region: "us-east-2" })).not.toThrow();
    expect(() => readConfig(context)).not.toThrow();
  });

  it.each([
    ["certificate", domain(arn("acm", "certificate", foreign))],
    ["consoleCertificate", console(arn("acm", "certificate", "us-east-1:999999999999"))],
    ["activeTableStream", { activeTableStream: stream(foreign) }],
  ])("is refused in %s, with the account found and the account expected", (key, context) => {
    expect(() => readConfig(context, place)).toThrow(
      new Error(
        `context key ${key}: its account is 999999999999, and the deployment's account is 123456789012; name a resource of this account`,
      ),
    );
    expect(() => readConfig(context, { region: "eu-west-1" })).not.toThrow();
  });

  it("is accepted where AWS accepts it: the key of another account, and the mail identity of another region", () => {
    expect(() => readConfig({ secretsKey: arn("kms", "key", foreign) }, place)).not.toThrow();
    const mail = { mailFrom: "a@example.com", sesIdentity: `arn:aws:ses:${there}:identity/example.com` };
    expect(() => readConfig(mail, place)).not.toThrow();
  });

  it("is refused in consoleCertificate unless its region is us-east-1, wherever the deployment is", () => {
    const wrong = arn("acm", "certificate");
    expect(() => readConfig(console(wrong), place)).toThrow(
      new Error(
        "context key consoleCertificate: must be the ARN of a certificate in us-east-1: arn:aws:acm:us-east-1:ACCOUNT:certificate/ID, " +
          `and not "${wrong}"`,
      ),
    );
    expect(() => readConfig(console(arn("acm", "certificate", "us-east-1:123456789012")), place)).not.toThrow();
  });

  it("is named for each key in a line of its own", () => {
    const context = { ...domain(arn("acm", "certificate", there)), secretsKey: arn("kms", "key", there) };
    expect(() => readConfig(context, place)).toThrow(
      /^context key certificate: [^\n]+\ncontext key secretsKey: [^\n]+$/,
    );
  });
});

describe("valid settings", () => {
  it("have defaults for a deployment with its own user pool", () => {
    expect(read({})()).toEqual({
      audience: [],
      webhookUrlPolicy: "public",
      timeScale: 1,
      capacity: capacityOf({ preset: "small" }),
      retention: { logDays: 90, importFileDays: 30, recoveryDays: 35 },
      watch: { runbook: "docs/runbook.md", canary: false },
      allowedOrigins: [],
      adopted: {},
      webAcl: false,
      rollout: "at-once",
      serverTiming: false,
    });
  });

  it("have presets for a new account and for production, which settings change", () => {
    expect(read({ preset: "production" })().capacity).toMatchObject({ accountConcurrency: 1_000, jobs: 10 });
    expect(read({})().capacity).toMatchObject({ accountConcurrency: 10, jobs: 2, changesAtOnce: 1 });
    expect(read({ preset: "production", accountConcurrency: "340" })().capacity.accountConcurrency).toBe(340);
    expect(read({ accountConcurrency: "1000", deliverySenders: "80" })().capacity).toMatchObject({
      deliverySenders: 80,
      reserved: {},
    });
  });

  it("fit a new account, in which a function may have 3 008 MB, with the preset production and listMemory", () => {
    const { memoryMb } = read({ preset: "production", listMemory: "3008" })().capacity;
    expect(Math.max(...Object.values(memoryMb).map(Number))).toBe(3_008);
  });

  it("let jobs change records slowly if the quota leaves too few executions for the functions that read the stream", () => {
    const changesAtOnce = (context: Record<string, unknown>) => read(context)().capacity.changesAtOnce;
    // Senders and jobs use 8 executions, requests 2, publisher and flush 8 (for about four shards). With fewer than 18, jobs slow down.
    expect([10, 11, 12, 14, 17, 18, 1_000].map((accountConcurrency) => changesAtOnce({ accountConcurrency }))).toEqual([
      1, 1, 3, 6, 10, 12, 12,
    ]);
    expect(changesAtOnce({ preset: "production", accountConcurrency: 340 })).toBe(12);
  });

  it("are text on the command line and JSON in settings.json", () => {
    const asText = {
      issuer: "https://id.example.com",
      audience: "web, mobile",
      timeScale: "60",
      allowedOrigins: "",
      serverTiming: "true",
    };
    const asJson = { ...asText, audience: ["web", "mobile"], timeScale: 60, allowedOrigins: [], serverTiming: true };
    expect(read(asText)()).toEqual(read(asJson)());
    expect(read(asText)()).toMatchObject({ audience: ["web", "mobile"], timeScale: 60 });
  });

  it("accept an issuer over http for development only", () => {
    const local = { issuer: "http://127.0.0.1:3000/oidc", audience: "local", webhookUrlPolicy: "local" };
    expect(read(local)()).toMatchObject({ issuer: local.issuer });
  });
});

/** Returns a new directory with this content in its file `settings.json`. */
function directoryWith(content?: string): string {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-settings-"));
  if (content !== undefined) writeFileSync(join(directory, "settings.json"), content);
  return directory;
}

const readFile = (content: unknown, context: Readonly<Record<string, unknown>> = {}) =>
  readDeployment(directoryWith(JSON.stringify(content)), context);

it("a setting comes from the context, else from settings.json, else it has its default", () => {
  const file = { stage: "test", alarmEmail: "file@example.com" };
  expect(readFile(file, { stage: "demo" })).toMatchObject({
    stage: "demo",
    alarmEmail: "file@example.com",
    timeScale: 1,
  });
  expect(readDeployment(directoryWith(), {}).stage).toBeUndefined();
});

it.each([
  [{ tabel: "Left" }, "settings.json: tabel: unknown, perhaps table; docs/settings.md lists all settings"],
  [{ "stage:": "test" }, "settings.json: stage:: unknown; docs/settings.md lists all settings"],
  [{ context: { stage: "test" } }, "settings.json: context: unknown; docs/settings.md lists all settings"],
  [{ preset: "large" }, 'settings.json: preset: must be small or production, and not "large"'],
  [{ monthlyBudget: 20 }, "context key alarmEmail: needed with monthlyBudget"],
  [
    { tags: ["aws:x=1"] },
    'settings.json: tags: must be 1 to 40 tags with different keys, such as CostCenter=42, of letters, digits, blanks and _.:/=+-@, which do not begin with aws:, and not "aws:x=1"',
  ],
  [["stage"], 'settings.json: must be an object such as {"preset": "small"}'],
])("%j in settings.json is refused with the place of the fault", (content, message) => {
  expect(() => readFile(content)).toThrow(new Error(message));
});

it("a file that is no JSON, and a fault of the context, are named", () => {
  expect(() => readDeployment(directoryWith("{"), {})).toThrow(/^settings\.json: is no valid JSON: /);
  expect(() => readFile({ preset: "small" }, { preset: "large" })).toThrow(/^context key preset: must be small or/);
});

it("tags are pairs of texts, and a value may contain an equals sign", () => {
  expect(readFile({ tags: "CostCenter=42, Team=a=b" }).tags).toEqual({ CostCenter: "42", Team: "a=b" });
  expect(() => readFile({ tags: ["A=1", "A=2"] })).toThrow("with different keys");
});
