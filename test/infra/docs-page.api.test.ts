/**
 * Tests the page of the local service that shows the API reference. Its button must sign a user in, and every GET with the examples of
 * the OpenAPI document must find demo data.
 */
import { createHash } from "node:crypto";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { docsPage, SECURITY_SCHEME } from "../../infra/build/docs-page.ts";
import { demoUsers } from "../../infra/local/demo-users.ts";
import { baseUrl, demo, send } from "../harness/client.ts";
import { bodyOf } from "../harness/shapes.ts";

const scriptsOf = (html: string): string[] =>
  [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, script = ""]) => script);

test("the button signs the selected user in, and the page's Content-Security-Policy allows its script only by a hash", async () => {
  const page = await send("GET", "/docs");
  const policy = page.headers.get("content-security-policy") ?? "";
  const scripts = scriptsOf(page.text);
  expect(scripts).toHaveLength(3);
  for (const script of scripts) {
    expect(policy).toContain(`'sha256-${createHash("sha256").update(script).digest("base64")}'`);
  }
  expect(policy).not.toMatch(/script-src[^;]*'unsafe/);
  const shown = [...page.text.matchAll(/<option>([^<]+)<\/option>/g)].map(([, email]) => email);
  expect(shown).toEqual(demoUsers);
  for (const email of shown) {
    const { name, token, message } = await clicked(scripts[2] ?? "", email ?? "");
    expect([name, message]).toEqual([SECURITY_SCHEME, `Signed in as ${email}`]);
    const headers = { Authorization: `Bearer ${token}` };
    const Me = z.object({ user: z.object({ email: z.string() }) });
    expect(bodyOf(await send("GET", "/api/me", { headers }), 200, Me).user.email).toBe(email);
  }
});

/**
 * Runs the page's script and clicks the button. Returns the security scheme and the token that the script passes to Swagger UI, and the
 * message that the user sees.
 */
async function clicked(script: string, email: string): Promise<{ name: string; token: string; message: string }> {
  let click = async (): Promise<void> => expect.fail("the button does nothing");
  const output = { textContent: "" };
  const given = { name: "", token: "" };
  const elements: Record<string, object> = {
    "sign-in": {
      addEventListener(_: "click", listener: () => Promise<void>) {
        click = listener;
      },
    },
    email: { value: email },
    "signed-in": output,
  };
  const preauthorizeApiKey = (name: string, token: string): void => void Object.assign(given, { name, token });
  runInNewContext(script, {
    document: { getElementById: (id: string) => elements[id] },
    fetch: (path: string, init: RequestInit) => fetch(new URL(path, `${baseUrl()}/docs`), init),
    window: { ui: { preauthorizeApiKey } },
  });
  await click();
  return { ...given, message: output.textContent };
}

test("the page of a deployed stack has no sign-in", () => {
  const { html } = docsPage();
  expect(scriptsOf(html)).toHaveLength(2);
  expect(html).not.toContain("local/token");
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

/** Paths for which the demo data has no records. */
const WITHOUT_DEMO = /^\/api\/(?:webhooks\/\{|prospects\/(?:imports|exports)\/\{)/;

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
    // // The demo data has no webhooks, imports and actions, so these answers are short.
    if (/webhooks|imports|actions/.test(path)) continue;
    expect(answer.text.length, path).toBeGreaterThan(40);
  }
});
