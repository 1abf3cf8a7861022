/** Tests that answers to generated bodies, queries and paths always match the OpenAPI document, and never have a status 5xx. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Method } from "../../infra/routes/route.ts";
import { routes } from "../../infra/routes/routes.ts";
import { type Answer, send } from "../harness/client.ts";
import { problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { sized } from "../harness/tier.ts";

const as = await newTeam();

const EXAMPLES = 500;
const RUNS = sized({ short: 1, wide: EXAMPLES });

const guarded = routes.filter(({ path }) => path.startsWith("/api/"));
const withBody: readonly Method[] = ["POST", "PATCH", "PUT"];

const nasty = fc.oneof(
  fc.constantFrom<unknown>(...[null, true, -1, 0, 1.5, 1e308, 2 ** 53, [], {}, [[]]]),
  fc.constantFrom("", "\u0000", "\ud800", "__proto__", "constructor", "C#1#REF", "../..", "' OR 1=1", "$(7*7)"),
  fc.constantFrom("{{7*7}}", "%00", "\u202e", "😀".repeat(300), "x".repeat(300)),
  fc.jsonValue(),
);
const fieldNames =
  `name phoneNumber emailAddress lat lng address addressId currentStatusId assignedToUserId assignedByUserId
  source sourceId sourceCreatedAt customFieldData value color sortOrder isActive url secretKey registrations event filter delayMinutes
  triggerMode manualTriggerButtonText id companyId role pk sk __proto__ constructor`.split(/\s+/);
const parameterNames =
  "bbox dateFrom dateTo status assignedToUserId rep tagId city search page pageSize __proto__ x".split(" ");

const fields = fc.dictionary(fc.constantFrom(...fieldNames), nasty, { maxKeys: 6 });
/** Generates bodies. Most of them have existing fields with wrong values, so that they pass the first checks of the service. */
const jsonBody = fc.oneof(
  { weight: 5, arbitrary: fields.map((body) => JSON.stringify(body)) },
  { weight: 1, arbitrary: nasty.map((body) => JSON.stringify(body) ?? "") },
  { weight: 1, arbitrary: fc.string({ unit: "binary" }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(...["{", "[1,", '{"a":1,}', "NaN", '{"lat":NaN}', '{"lat":1e999}', "﻿{}", "\u0000"]),
  },
);
const otherTypes = ["text/plain", "application/xml", "application/json; charset=utf-16", "multipart/form-data", ""];
const contentType = fc.oneof(
  { weight: 8, arbitrary: fc.constant("application/json") },
  { weight: 1, arbitrary: fc.constantFrom(...otherTypes) },
);
const segment = fc.oneof(
  fc.constantFrom("1", "0", "-1", "9007199254740992", "1e3", "1".repeat(400)),
  // `%D9%A1` is an Arabic digit in UTF-8. The next text has the same two bytes as two characters.
  fc.constantFrom("%2F", "%00", "..", "%2e%2e", "%D9%A1", "\u00d9\u00a1", "a%20b", "%F0%9F%98%80"),
  fc.string({ minLength: 1 }).map((text) => encodeURIComponent(text.toWellFormed())),
);
const query = fc.array(
  fc.tuple(fc.constantFrom(...parameterNames), fc.oneof(nasty.map(String), fc.string({ unit: "binary" }))),
  { maxLength: 4 },
);

const request = fc.record({ segments: fc.tuple(segment, segment), query, body: jsonBody, contentType });
const examples = fc.sample(request, { numRuns: EXAMPLES, seed: 7 });
const examplesOf = (endpoint: number) =>
  Array.from({ length: RUNS }, (_, n) => examples[(endpoint * RUNS + n) % EXAMPLES]).filter((one) => one !== undefined);

/** Fails the test if the answer is a server error or contains internals such as a stack trace. */
function assertHarmless(status: number, text: string, sent: unknown): void {
  const isTelling = /arn:aws|at \S+ \(|\.ts:\d+|\.mjs:\d+|TableName|ValidationException/.test(text);
  // `expect` is called only in case of a failure, because tens of thousands of calls to it would take seconds.
  if (status >= 500 || isTelling) expect.fail(`${status} ${text} to ${JSON.stringify(sent)}`);
}

/**
 * The endpoints are tested concurrently, to use all processors. The requests to one endpoint are sent one after the other, so that each
 * function runs in only one environment. The start of an environment is expensive.
 */
const endpoints = guarded.map(({ method, path }, at) => [method, path, at] as const);
describe.concurrent.each(endpoints)("%s %s", (method, path, at) => {
  test(`${RUNS} hostile requests`, { tags: "sized" }, async () => {
    // The GET requests use the second company. No request of this test creates records there, so its lists stay short.
    const client = method === "GET" ? as.otherOwner : as.admin;
    for (const example of examplesOf(at)) {
      const [first, second] = example.segments;
      const place = path.replace("{id}", first).replace("{registrationId}", second);
      const search = new URLSearchParams(
        example.query.map(([name, value]): [string, string] => [name, value.toWellFormed()]),
      );
      const { contentType, body } = example;
      const sent = withBody.includes(method) ? { headers: { "Content-Type": contentType }, body } : {};
      const answer = await client.send(method, `${place}?${search}`, sent);
      assertHarmless(answer.status, answer.text, example);
    }
  });
});

describe("paths and verbs", () => {
  test("an unknown route gives 404, a wrong method 405 with Allow", async () => {
    for (const path of ["/api/", "/api/nothing", "/api/prospects/1/2/3", "/api//prospects"]) {
      problemOf(await send("GET", path, { headers: { Authorization: "x" } }), 404, "not_found");
    }
    for (const path of ["/api", "/API/prospects", "//api/me", "/health/", "/Docs"]) {
      problemOf(await send("GET", path), 404, "not_found");
      expect(await send("HEAD", path)).toMatchObject({ status: 404, text: "" });
    }
    problemOf(await send("DELETE", "/api/prospects"), 405, "method_not_allowed");
  });

  test("a wrong method gives 405 with Allow on every path, for any media type and body", async () => {
    const types = [
      ...[undefined, "", "application/json", "text/plain", "text/x", "image/png", "multipart/form-data"],
      ...["application/vnd.api+json; charset=utf-8", "no media type"],
    ];
    for (const [i, [path, own]] of [...Map.groupBy(routes, (route) => route.path)].entries()) {
      const allowed = own.map(({ method }) => method);
      const place = path.replace(/\{\w+\}/g, "1");
      const wrong = ["PUT", "POST", "PATCH", "DELETE"].filter((verb) => !allowed.some((it) => it === verb));
      const [verb = ""] = wrong;
      // One function sends the 405 for all paths, so a third of the media types suffices for each path.
      for (const type of types.filter((_, n) => n % 3 === i % 3)) {
        const headers: Record<string, string> = type === undefined ? {} : { "Content-Type": type };
        const answer = await send(verb, place, { headers, body: type === undefined ? "" : "{" });
        problemOf(answer, 405, "method_not_allowed");
        expect(answer.headers.get("allow")?.split(", ").toSorted(), path).toEqual(expect.arrayContaining(allowed));
        expect(answer.headers.get("content-type")).toBe("application/problem+json");
      }
      if (allowed.includes("GET")) continue;
      const head = await send("HEAD", place);
      expect([head.status, head.text], path).toEqual([405, ""]);
    }
  });

  test("a page of an allowed origin can read the 405 answer", async () => {
    const answer = await send("PUT", "/api/me", { headers: { Origin: "https://app.example.com" } });
    problemOf(answer, 405, "method_not_allowed");
    expect(answer.headers.get("access-control-allow-origin")).toBe("https://app.example.com");
    const preflight = await send("OPTIONS", "/api/me", { headers: { Origin: "https://app.example.com" } });
    expect([preflight.status, preflight.headers.get("access-control-allow-methods")]).toEqual([204, "GET,HEAD"]);
  });
  test("HEAD has the status and the headers of GET and no body, on every path with GET", async () => {
    const changing = ["date", "x-request-id", "content-length", "transfer-encoding", "server-timing", "etag"];
    const shown = ({ status, headers }: Answer) => ({
      status,
      headers: Object.fromEntries([...headers].filter(([name]) => !changing.includes(name))),
    });
    const { owner } = as;
    const headers = { "Accept-Encoding": "identity" };
    const paths = routes
      // The sign-in redirects to a URL with a random `state`, so its answers to GET and HEAD always differ.
      .filter(({ method, path }) => method === "GET" && path !== "/api/session/login")
      .map(({ path }) => path.replace(/\{\w+\}/g, "1"));
    for (const path of paths) {
      const [get, head] = [await owner.send("GET", path, { headers }), await owner.send("HEAD", path, { headers })];
      expect(head.text, path).toBe("");
      expect(shown(head), path).toEqual(shown(get));
    }
    const refused = await send("HEAD", "/api/prospects");
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  });
  test("a page of an allowed origin sees 404 for a mistyped path, because the preflight passes", async () => {
    const headers = { Origin: "https://app.example.com", "Access-Control-Request-Method": "PATCH" };
    const mistyped = ["/api/prospekts", "/api/prospects/1/nodes/2", "/api", "/", "/api/prospects/1/actions/1/x"];
    for (const path of mistyped) {
      const preflight = await send("OPTIONS", path, { headers });
      expect(preflight.status, path).toBe(204);
      expect(preflight.headers.get("access-control-allow-methods"), path).toContain("PATCH");
      const answer = await send("PATCH", path, { headers, body: "{}" });
      problemOf(answer, 404, "not_found");
      for (const { headers: received } of [preflight, answer]) {
        expect(received.get("access-control-allow-origin"), path).toBe("https://app.example.com");
      }
      expect(answer.headers.get("access-control-expose-headers"), path).toContain("X-Request-Id");
    }
  });
  test("GET /health answers without a token and without a read of the table", async () => {
    const answer = await send("GET", "/health");
    expect([answer.status, answer.body]).toEqual([200, { status: "ok" }]);
    expect(answer.headers.get("server-timing")).toContain("requests;dur=0");
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  test.each([
    ...["/api/prospects/%", "/api/prospects/%zz", "/api/prospects/%c0%af", "/api/prospects?%", "/api/prospects?a=%ff"],
    ...["//", "/api/prospects/1#x", "*"],
  ])("%s is answered", async (path) => {
    const answer = await as.admin.send("GET", path);
    assertHarmless(answer.status, answer.text, path);
  });
});
