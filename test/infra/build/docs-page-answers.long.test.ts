/**
 * Tests the local service's page with the API reference, without a browser. If a user sends a GET with the examples of the OpenAPI
 * document, the service must find demo data.
 */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { docsPage, SECURITY_SCHEME } from "../../../infra/build/docs-page.ts";
import { demoUsers } from "../../../infra/local/demo/users.ts";
import { demo, send } from "../../harness/client.ts";
import { bodyOf } from "../../harness/shapes.ts";

test("the page of the local service offers the demo users, and the page of a deployed stack has no sign-in", async () => {
  const options = (html: string) => [...html.matchAll(/<option>([^<]+)<\/option>/g)].map(([, email]) => email);
  expect(options((await send("GET", "/docs")).text)).toEqual(demoUsers);
  const { html } = docsPage();
  expect(options(html)).toEqual([]);
  expect(html).not.toContain('id="sign-in"');
  expect(html).not.toContain("acme.test");
});

const Document = z.object({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.object({
        parameters: z._default(
          z.array(
            z.looseObject({
              name: z.optional(z.string()),
              in: z.optional(z.string()),
              example: z.optional(z.union([z.string(), z.number()])),
            }),
          ),
          [],
        ),
      }),
    ),
  ),
  components: z.looseObject({ securitySchemes: z.record(z.string(), z.unknown()) }),
});

/** Matches the paths for which the demo data has no records, and the paths of the sign-in. */
const WITHOUT_DEMO = /^\/api\/(?:session\/|(?:webhooks|jobs|service-accounts)\/\{|prospects\/(?:imports|exports)\/\{)/;

test("every GET with the examples of the document finds demo data", async () => {
  const { paths, components } = bodyOf(await send("GET", "/openapi.json"), 200, Document);
  expect(Object.keys(components.securitySchemes)).toEqual([SECURITY_SCHEME]);
  const gets = Object.entries(paths).flatMap(([path, { get }]) => (get === undefined ? [] : [{ path, get }]));
  const found = gets.filter(({ path }) => path.startsWith("/api/") && !WITHOUT_DEMO.test(path));
  expect(found.length).toBeGreaterThan(20);
  for (const { path, get } of found) {
    const filled = get.parameters.filter(({ example }) => example !== undefined);
    const place = filled.reduce((text, { name, example }) => text.replace(`{${name}}`, String(example)), path);
    const query = filled.flatMap((it) => (it.in === "query" ? [`${it.name}=${it.example}`] : []));
    const answer = await demo.owner("GET", `${place}${query.length > 0 ? "?" : ""}${query.join("&")}`);
    expect([path, answer.status]).toEqual([path, 200]);
    // The demo data has no webhooks, imports, actions, jobs and service accounts, so the answers of these paths are short.
    if (/webhooks|imports|actions|jobs|service-accounts/.test(path)) continue;
    expect(answer.text.length, path).toBeGreaterThan(40);
  }
});
