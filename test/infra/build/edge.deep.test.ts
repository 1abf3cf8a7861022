/** Tests the functions that CloudFront and the local service run: headers and cookies for the API, and paths of the console. */
import { runInNewContext } from "node:vm";
import { transform } from "esbuild";
import { describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { problemBody } from "#shared/errors.ts";
import { basemapOf, consoleConfig, contentSecurityPolicy, edgeFunction } from "../../../infra/edge/console-site.ts";
import { apiHeaders, createEdge } from "../../../infra/edge/local-edge.ts";
import { serveOnLoopback } from "../../../infra/local/servers/listener.ts";
import { VIEWER_ADDRESS } from "../../../infra/stack/web-acl.ts";

type Part = { value: string; multiValue?: { value: string }[] };
type Parts = Record<string, Part>;
const Handler = z.custom<(event: object) => unknown>((it) => typeof it === "function");
const Answer = z.object({
  uri: z.string(),
  headers: z.record(z.string(), z.unknown()),
  cookies: z.record(z.string(), z.unknown()),
});

function resultOf(name: "api-request" | "page-request", uri: string, headers: Parts = {}, cookies: Parts = {}) {
  const handler = Handler.parse(runInNewContext(`${edgeFunction(name, true)}\nhandler;`));
  return handler({
    version: "1.0",
    context: { requestId: "a-b_c==" },
    viewer: { ip: "2001:db8::7" },
    request: { method: "GET", uri, querystring: {}, ...structuredClone({ headers, cookies }) },
  });
}
const run = (...request: Parameters<typeof resultOf>) => Answer.parse(resultOf(...request));

const id = "s".repeat(43);
const session: Parts = { "__Host-session": { value: id } };
const asked: Parts = { "x-requested-with": { value: "canvassing-console" } };
const twice = (value: string, other: string): Part => ({ value, multiValue: [{ value }, { value: other }] });

describe("a request to the API", () => {
  it("of the console carries the id of the session in the Authorization header, and no cookie", () => {
    const { headers, cookies } = run("api-request", "/api/me", asked, { ...session, other: { value: "x" } });
    expect([headers.authorization, cookies]).toEqual([{ value: `Session ${id}` }, {}]);
  });

  it.each<[string, Parts, Parts]>([
    ["without the header of the console", {}, session],
    ["with another value of the header", { "x-requested-with": { value: "XMLHttpRequest" } }, session],
    ["with the header twice", { "x-requested-with": twice("canvassing-console", "canvassing-console") }, session],
    ["without a session", asked, {}],
    ["with two sessions", asked, { "__Host-session": twice(id, "t".repeat(43)) }],
    ["with a cookie without the prefix", asked, { session: { value: id } }],
    ["with an id that is too short", asked, { "__Host-session": { value: id.slice(1) } }],
    ["with an id that is too long", asked, { "__Host-session": { value: `${id}s` } }],
    ["with an id that holds a header", asked, { "__Host-session": { value: `${id.slice(2)}\r\n` } }],
  ])("%s gets no Authorization header and no cookie", (_, headers, cookies) => {
    const answer = run("api-request", "/api/me", headers, cookies);
    expect([answer.headers.authorization, answer.cookies]).toEqual([undefined, {}]);
  });

  it("keeps its own Authorization header, even an empty one", () => {
    for (const value of ["Bearer a.b.c", ""]) {
      const { headers, cookies } = run("api-request", "/api/me", { ...asked, authorization: { value } }, session);
      expect([headers.authorization, cookies]).toEqual([{ value }, {}]);
    }
  });

  it("about the session keeps the two cookies of the console and gets no Authorization header", () => {
    const signIn: Parts = { "__Host-sign-in": { value: "pending" } };
    const answer = run("api-request", "/api/session/logout", asked, { ...session, ...signIn, other: { value: "x" } });
    expect([answer.headers.authorization, answer.cookies]).toEqual([undefined, { ...session, ...signIn }]);
    expect(run("api-request", "/api/sessions", asked, session).cookies).toEqual({});
  });

  it.each<[string, Parts]>([
    ["no header", {}],
    ["an address that the user has made up", { [VIEWER_ADDRESS]: { value: "192.0.2.1" } }],
    ["two made-up addresses", { [VIEWER_ADDRESS]: twice("192.0.2.1", "192.0.2.2") }],
  ])("that comes with %s carries the address of the user", (_, headers) => {
    for (const uri of ["/api/me", "/api/session/login", "/health"]) {
      expect(run("api-request", uri, headers).headers[VIEWER_ADDRESS]).toEqual({ value: "2001:db8::7" });
    }
  });

  it("on a machine without https uses cookies without the prefix", () => {
    const change = apiHeaders(edgeFunction("api-request", false));
    const headersOf = (...lines: [string, string[]][]) =>
      change({ verb: "GET", path: "/api/me", headers: new Map(lines) });
    const sent: [string, string[]][] = [["X-Requested-With", ["canvassing-console"]]];
    expect(headersOf(["Cookie", [`a=b; session=${id}`]], ...sent).get("authorization")).toEqual([`Session ${id}`]);
    expect(headersOf(["Cookie", [`session=${id}; session=${id}`]], ...sent).has("authorization")).toBe(false);
    expect(headersOf(["cookie", ["__proto__=1; =x; ;"]], ["Accept", ["a", "b"]])).toEqual(
      new Map([
        ["Accept", ["a", "b"]],
        ["x-viewer-address", ["127.0.0.1"]],
      ]),
    );
  });
});

it.each([
  ["/", "/index.html"],
  ["/prospects", "/index.html"],
  ["/prospects/", "/index.html"],
  ["/v1.2/prospects", "/index.html"],
  ["/apiary", "/index.html"],
  ["/prospects/api", "/index.html"],
  ["/assets/index-4f2a.js", "/assets/index-4f2a.js"],
  ["/config.json", "/config.json"],
])("the path %s of the console leads to %s", (path, uri) => {
  expect(run("page-request", path).uri).toBe(uri);
});

it.each([
  "/api",
  "/API",
  "/Api/prospects",
  "//api/me",
  "/API/prospects/export.csv",
  "/Docs",
  "/docs/",
  "/health/",
  "/OpenAPI.json",
])("the path %s, which is probably a mistyped path of the API, gets the API's error 404", (path) => {
  const { body, ...response } = z.parse(
    z.looseObject({ body: z.object({ data: z.string() }) }),
    resultOf("page-request", path),
  );
  expect(response).toMatchObject({
    statusCode: 404,
    headers: { "content-type": { value: "application/problem+json" }, "x-request-id": { value: "a-b_c==" } },
  });
  const detail = "No route of the API has this path. Its paths begin with /api/, in lower case.";
  expect(JSON.parse(body.data)).toEqual(problemBody("not_found", detail, "a-b_c==", []));
});

it.each(["api-request", "page-request"] as const)(
  "%s fits the runtime of CloudFront: size and syntax",
  async (name) => {
    const source = edgeFunction(name, true);
    expect(Buffer.byteLength(source)).toBeLessThan(10 * 1024);
    // CloudFront runs ES5 with `const` and `let`. Only the conversion to ES5 replaces newer syntax, so with such syntax the results differ.
    const converted = async (target: string) =>
      (await transform(source, { target, supported: { "const-and-let": true } })).code;
    expect(await converted("es5")).toBe(await converted("esnext"));
  },
);

it("the content security policy allows only the origins of the bucket and of the base map", () => {
  const bucket = "https://files.s3.eu-west-1.amazonaws.com";
  const policy = contentSecurityPolicy(bucket, undefined);
  expect(policy).toContain(`connect-src 'self' ${bucket};`);
  expect(policy.replace(bucket, "")).not.toMatch(/https?:|unsafe|\*/);
  const styleUrl = "https://maps.example.com/style.json?key=1";
  const withMap = contentSecurityPolicy(bucket, basemapOf(styleUrl));
  expect(withMap).toContain(`connect-src 'self' ${bucket} https://maps.example.com;`);
  expect(withMap.match(/https:/g)).toHaveLength(3);
  const origins = ["https://tiles.example.com", "https://maps.example.com"];
  const withTiles = contentSecurityPolicy(bucket, basemapOf(styleUrl, origins));
  expect(withTiles).toContain(`connect-src 'self' ${bucket} https://maps.example.com https://tiles.example.com;`);
  expect(withTiles).toContain("img-src 'self' data: blob: https://maps.example.com https://tiles.example.com;");
});

it("without a setting, the base map is that of OpenFreeMap, and `none` allows no origin of a map", () => {
  const origins = (setting?: string) => contentSecurityPolicy("", basemapOf(setting)).match(/https:[^ ;]+/g);
  expect(origins()).toEqual(["https://tiles.openfreemap.org", "https://tiles.openfreemap.org"]);
  expect(origins("none")).toBe(null);
});

it("the file config.json names the styles of both colour schemes, and whether the console has a service worker", () => {
  const config = (setting: string | undefined, offline: boolean): unknown =>
    JSON.parse(consoleConfig({ issuer: "https://id.example.com", basemap: basemapOf(setting), offline }));
  const own = "https://maps.example.com/style.json";
  expect(config(own, true)).toMatchObject({ basemap: { light: own, dark: own }, offline: true, streets: null });
  expect(config("none", false)).toMatchObject({ basemap: null, offline: false });
  expect(config(undefined, true)).toMatchObject({ basemap: { dark: expect.stringMatching(/\/dark$/) } });
});

it("the local service compresses a file as CloudFront does, if the browser accepts it", async () => {
  const streets = Array.from({ length: 500 }, () => "Elm St");
  const settings = { issuer: "https://id.example.com", basemap: undefined, offline: true, streets };
  const edge = createEdge({ consoleUrl: "http://127.0.0.1:3000", uploadOrigin: "http://127.0.0.1:4000", settings });
  const server = await serveOnLoopback(({ url: target = "/", method = "GET", headers }, response) =>
    edge.serve(
      { method, target, host: headers.host, acceptEncoding: headers["accept-encoding"]?.toString() },
      response,
    ),
  );
  const load = async (encoding: string) => {
    const response = await fetch(`${server.endpoint}/config.json`, { headers: { "Accept-Encoding": encoding } });
    return [response.headers.get("Content-Encoding"), await response.text()];
  };
  expect(await load("gzip, br")).toEqual(["gzip", consoleConfig(settings)]);
  expect(await load("identity")).toEqual([null, consoleConfig(settings)]);
  server.stop();
});
