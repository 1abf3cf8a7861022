/**
 * Tests that bundles are small, contain only code that they need, and execute little of it when they are loaded. Also tests the key of the
 * build caches, and the documents that functions serve.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { EMAIL_TEXT } from "#shared/auth/user-schema.ts";
import { BUNDLE_BUDGET_BYTES, budgetGroup, root } from "../../../infra/build/bundle.ts";
import { cachedBundle, cacheKey } from "../../../infra/build/bundle-cache.ts";
import { openApiDocument } from "../../../infra/openapi/generate.ts";
import { asVersion30 } from "../../../infra/openapi/version30.ts";
import { type EventFunction, usesSecretsKey } from "../../../infra/routes/route.ts";
import { authorizer, eventFunctions, routes } from "../../../infra/routes/routes.ts";
import { functionFiles } from "../../../infra/synth.ts";
import { present } from "../../harness/shapes.ts";

const files = functionFiles();
const directory = mkdtempSync(join(tmpdir(), "canvassing-bundle-"));
const bundles = await cachedBundle(files, directory);
const addressOf = (file: string): string => pathToFileURL(join(directory, file, "index.mjs")).href;

const Module = z.object({ handler: z.custom<(event: unknown) => Promise<unknown>>((it) => typeof it === "function") });
const Answer = z.object({ statusCode: z.number(), headers: z.record(z.string(), z.string()), body: z.string() });

async function get(file: string, resource: string, stage = "") {
  const module: unknown = await import(addressOf(file));
  const { handler } = Module.parse(module);
  const requestContext = { requestId: "request-1", path: `${stage}${resource}` };
  return Answer.parse(await handler({ httpMethod: "GET", resource, path: resource, requestContext }));
}

/** A bundle may contain these large libraries only if the path of its function matches `functions`. */
const heavy = [
  { modules: /\/zod\/.*\/locales\/(?!en\.)/, functions: /^$/ },
  { modules: /\/zod\/v4\/(?:classic|mini\/external-all)/, functions: /^$/ },
  {
    modules: /\/csv-(?:parse|stringify)\/|^shared\/csv\//,
    functions: /^(?:prospects\/(?:import|export|template)|imports\/create|jobs\/)/,
  },
  { modules: /\/(?:@fastify\/)?busboy\/|\/multipart/, functions: /^(?:prospects\/import|imports\/)/ },
];

const codeBytes = (file: string): number =>
  readdirSync(join(directory, file), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.[cm]?js$/.test(name))
    .reduce((sum, name) => sum + statSync(join(directory, file, name)).size, 0);

describe("a bundle", () => {
  it("is small", () => {
    const large = [...bundles]
      .map(([file, made]) => ({ file, bytes: codeBytes(file), limit: BUNDLE_BUDGET_BYTES[budgetGroup(made)] }))
      .filter(({ bytes, limit }) => bytes > limit);
    expect(bundles.size).toBe(files.length);
    expect(large).toEqual([]);
  });

  it("contains the KMS client only if the function has the right to use KMS", () => {
    const holders = [...bundles].filter(([, { modules }]) => modules.some((path) => path.includes("/client-kms/")));
    const users = [authorizer, ...routes, ...Object.values<EventFunction>(eventFunctions)]
      .filter(({ access }) => usesSecretsKey(access))
      .map(({ file }) => file);
    expect(new Set(holders.map(([file]) => file))).toEqual(new Set(users));
  });

  it("contains no text of the OpenAPI document", () => {
    const holders = files.filter((file) =>
      readFileSync(join(directory, file, "index.mjs"), "utf8").includes(EMAIL_TEXT),
    );
    expect(holders).toEqual([]);
  });

  it("contains no locales, CSV or multipart code that it does not use", () => {
    const needless = [...bundles].flatMap(([file, { modules }]) =>
      heavy
        .filter(({ functions }) => !functions.test(file))
        .flatMap((it) => modules.filter((path) => it.modules.test(path)).map((path) => `${file}: ${path}`)),
    );
    expect(needless).toEqual([]);
  });
});

it("GET /openapi.json is the document with the policy of webhook URLs and the deployment's address, also as OpenAPI 3.0", async () => {
  process.env.WEBHOOK_URL_POLICY = "local";
  const { statusCode, headers, body } = await get("docs/openapi", "/openapi.json", "/live");
  expect(statusCode).toBe(200);
  expect(headers).toMatchObject({ "Content-Type": "application/json", "X-Request-Id": "request-1" });
  const generated = await openApiDocument();
  expect(JSON.parse(body)).toEqual({
    ...generated,
    info: { ...generated.info, "x-webhook-url-policy": "local" },
    servers: [{ url: "/live" }],
  });
  const withoutStage = await get("docs/openapi", "/openapi.json");
  expect(JSON.parse(withoutStage.body)).toMatchObject({ servers: [{ url: "/" }] });
  const older = JSON.parse((await get("docs/openapi30", "/openapi-3.0.json", "/live")).body);
  expect(older).toEqual({
    ...asVersion30(generated),
    info: { ...generated.info, "x-webhook-url-policy": "local" },
    servers: [{ url: "/live" }],
  });
});

const Packed = z.object({
  style: z.string(),
  script: z.string(),
  guides: z.array(z.object({ title: z.string(), text: z.string() })),
});

describe("GET /docs", () => {
  it("is one page that loads nothing from another host and allows its own scripts only", async () => {
    const answer = await get("docs/page", "/docs");
    const { statusCode, headers, body } = answer;
    expect(statusCode).toBe(200);
    expect(Buffer.byteLength(JSON.stringify(answer)), "so that a flood takes little").toBeLessThan(800_000);
    expect(headers).toMatchObject({ "Content-Type": "text/html; charset=utf-8", "X-Request-Id": "request-1" });
    const [, packed = ""] = /<script id="packed" type="text\/plain">([^<]*)<\/script>/.exec(body) ?? [];
    const content = Packed.parse(JSON.parse(gunzipSync(Buffer.from(packed, "base64")).toString()));
    const markup = `${body.replace(/<script[^>]*>[\s\S]*?<\/script>/g, "")}<style>${content.style}`;
    expect(markup.match(/<script|<link|<img|@import|url\((?!"?data:)[^)]*/g)).toBeNull();
    const policy = headers["Content-Security-Policy"] ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("connect-src 'self'");
    const scripts = [...body.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, text]) => text ?? "");
    expect(scripts).toHaveLength(1);
    for (const text of [...scripts, content.script]) {
      expect(policy).toContain(`'sha256-${createHash("sha256").update(text).digest("base64")}'`);
      expect(() => new Function(text)).not.toThrow();
    }
    // If the script in the markup contained `<!--` or `<script`, a browser would parse the rest of the page differently.
    expect(scripts[0]?.match(/<!--|<\/?script/i)).toBeNull();
    expect(content.guides.map(({ title }) => title)).toEqual(expect.arrayContaining(["Receive webhooks", "Errors"]));
    for (const { text } of content.guides) expect(text).not.toMatch(/\]\((?!https?:|#guide-)/);
  });
});

it("a changed source changes the key of the build caches, even if its name begins like that of the built files; built files do not", () => {
  const folder = mkdtempSync(join(tmpdir(), "canvassing-key-"));
  const keyWith = (...path: readonly string[]): string => {
    mkdirSync(join(folder, ...path, ".."), { recursive: true });
    writeFileSync(join(folder, ...path), "changed");
    return cacheKey([], [relative(root, folder)]);
  };
  const before = keyWith("src", "page.ts");
  expect(keyWith("dist", "index.html")).toBe(before);
  expect(keyWith("dist.sha256")).toBe(before);
  expect(keyWith("node_modules", "package", "index.js")).toBe(before);
  expect(keyWith("src", "distance.ts")).not.toBe(before);
});

const Loaded = z.object({
  started: z.array(z.object({ handler: z.string(), bytes: z.number(), calls: z.number() })),
  nodeModules: z.array(z.string()),
});
const script = join(import.meta.dirname, "started-code.ts");
const run = spawnSync(process.execPath, [script, ...files.map(addressOf)], { encoding: "utf8", env: {} });
expect(run.stderr).toBe("");
const { started, nodeModules } = Loaded.parse(JSON.parse(run.stdout));

/** Maximum number of Node's modules that all bundles together load, without those that every process loads. Each slows the start. */
const NODE_MODULES = 130;

it("bundles load without any environment, with few modules of Node, and export a handler", () => {
  expect(nodeModules.length).toBeGreaterThan(0);
  expect(nodeModules.length).toBeLessThanOrEqual(NODE_MODULES);
  expect(
    nodeModules.filter((name) => name.includes("undici")),
    "parts of fetch",
  ).toEqual([]);
  expect(started.map(({ handler }) => handler)).toEqual(files.map(() => "function"));
});

/** Maximum bytes of executed code and number of calls while a bundle is loaded. The duration of a cold start depends on both. */
const STARTED = { table: { bytes: 120_000, calls: 24_000 }, others: { bytes: 200_000, calls: 24_000 } } as const;

function exceeds(file: string, bytes: number, calls: number): boolean {
  const limit = STARTED[budgetGroup(present(bundles.get(file)))];
  return bytes > limit.bytes || calls > limit.calls;
}

/** The test limits the executed code and not the start times, because start times differ from run to run, and the code does not. */
it("a bundle executes little of its code when it starts", () => {
  expect(started.map((it) => it.bytes > 500)).toEqual(files.map(() => true));
  const slow = started.flatMap(({ bytes, calls }, at) =>
    exceeds(files[at] ?? "", bytes, calls) ? [{ file: files[at], bytes, calls }] : [],
  );
  expect(slow).toEqual([]);
});
