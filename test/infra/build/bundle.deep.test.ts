/** Tests that bundles are small and contain only code that they need. Also tests the key of the build caches, and served documents. */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { EMAIL_TEXT } from "#shared/auth/user-schema.ts";
import { BUNDLE_BUDGET_BYTES, budgetGroup, root } from "../../../infra/build/bundle.ts";
import { cacheKey } from "../../../infra/build/bundle-cache.ts";
import { openApiDocument } from "../../../infra/openapi/generate.ts";
import { asVersion30 } from "../../../infra/openapi/version30.ts";
import { type EventFunction, usesSecretsKey } from "../../../infra/routes/route.ts";
import { authorizer, eventFunctions, methodNotAllowed, routes } from "../../../infra/routes/routes.ts";
import { methodsOf } from "../../../infra/stack/api-definition.ts";
import { functionFiles } from "../../../infra/synth.ts";
import { addressOf, bundles, directory } from "./built-bundles.ts";

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
    expect(bundles.size).toBe(functionFiles().length);
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
    const holders = functionFiles().filter((file) =>
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

it("a bundle's import of Node's HTTP client does not load fetch", () => {
  const wrong = functionFiles().filter((file) =>
    /from"(?:node:)?http"/.test(readFileSync(join(directory, file, "index.mjs"), "utf8")),
  );
  expect(wrong).toEqual([]);
});

it("the function that answers 405 has a file with the methods of every path of the route table", () => {
  const methods: unknown = JSON.parse(readFileSync(join(directory, methodNotAllowed.file, "methods.json"), "utf8"));
  const known = z.parse(z.record(z.string(), z.array(z.string())), methods);
  const expected = Map.groupBy(routes, ({ path }) => path);
  expect(Object.fromEntries(Object.entries(known).map(([path, own]) => [path, own.toSorted()]))).toEqual(
    Object.fromEntries([...expected].map(([path, own]) => [path, own.flatMap(methodsOf).toSorted()])),
  );
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
    const { statusCode, headers, body } = await get("docs/page", "/docs");
    expect(statusCode).toBe(200);
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

  it("is at most 800 KB large, so that a flood of requests for it takes little of the service", async () => {
    const answer = await get("docs/page", "/docs");
    expect(Buffer.byteLength(JSON.stringify(answer))).toBeLessThan(800_000);
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
