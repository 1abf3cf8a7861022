/** Tests the page with the API reference in a real browser, and that the examples of the OpenAPI document find demo data. */
import { afterAll, expect, test } from "vitest";
import * as z from "zod/mini";
import { docsPage, SECURITY_SCHEME } from "../../../infra/build/docs-page.ts";
import { demoUsers } from "../../../infra/local/demo/users.ts";
import { faultsOf, noBrowser, openBrowser, openContext } from "../../harness/browser.ts";
import { baseUrl, demo, send } from "../../harness/client.ts";
import { bodyOf } from "../../harness/shapes.ts";

const browser = noBrowser === undefined ? await openBrowser() : undefined;
afterAll(() => browser?.close());

test("the button signs the selected user in, and a request from the page is answered for this user", async ({
  skip,
}) => {
  if (browser === undefined) return skip(noBrowser);
  const page = await (await openContext(browser)).newPage();
  const faults = faultsOf(page);
  await page.goto(`${baseUrl()}/docs`);
  // All sections are closed at first. The search opens the sections that contain a result, and also finds words in an operation's summary.
  await page.getByText("Homes and businesses to canvass").waitFor();
  expect(await page.locator("#reference .opblock-tag-section").first().innerText()).toContain("Prospects");
  expect(await page.locator(".opblock-tag-section .opblock").count()).toBe(0);
  const search = page.getByPlaceholder("Filter by tag or path");
  await search.fill("signed-in user");
  const operation = page.locator(".opblock", { has: page.locator('[data-path="/api/me"]') });
  await operation.locator(".opblock-summary-control").click();
  await operation.getByRole("button", { name: "Try it out" }).click();
  for (const email of [demoUsers[0], demoUsers.at(-1)]) {
    await page.getByLabel("Demo user").selectOption(email ?? "");
    await page.getByRole("button", { name: "Get a local token" }).click();
    await page.getByText(`Signed in as ${email}`).waitFor();
    await operation.getByRole("button", { name: "Execute" }).click();
    const answer = operation.locator(".live-responses-table .response");
    await answer.getByText(`"email": "${email}"`).waitFor();
    expect(await answer.locator(".response-col_status").innerText()).toContain("200");
  }
  // The page describes the errors of all operations in one guide, so an operation lists only its successful status.
  const statuses = await operation
    .locator(".responses-table:not(.live-responses-table) .response-col_status")
    .allInnerTexts();
  expect(statuses.filter((status) => /^\d/.test(status.trim())).map((status) => status.trim())).toEqual(["200"]);
  await page.locator("summary", { hasText: "Errors" }).click();
  await page.getByText("idempotency_mismatch").first().waitFor();
  await page.locator("summary", { hasText: "Receive webhooks" }).click();
  await page.getByRole("heading", { name: "Samples" }).waitFor();
  const event = page.locator(".webhooks .opblock", { hasText: "note.created" });
  await event.locator(".opblock-summary-control").click();
  await event.getByText("Wants a quote after the hail season.").waitFor();
  expect(faults).toEqual([]);
  // The content security policy of the page forbids this script. `faults` must report it: this shows that the check above finds violations.
  await page.evaluate(`document.head.append(Object.assign(document.createElement("script"), { text: "0" }))`);
  await expect.poll(() => faults).toEqual([expect.stringContaining("Content Security Policy")]);
});

test("the page of the local service offers the demo users, and the page of a deployed stack has no sign-in", async () => {
  const options = (html: string) => [...html.matchAll(/<option>([^<]+)<\/option>/g)].map(([, email]) => email);
  expect(options((await send("GET", "/docs")).text)).toEqual(demoUsers);
  const { html } = docsPage();
  expect(options(html)).toEqual([]);
  expect(html).not.toContain('id="sign-in"');
  expect(html).not.toContain("acme.test");
});

const Parameter = z.looseObject({
  name: z.optional(z.string()),
  in: z.optional(z.string()),
  example: z.optional(z.union([z.string(), z.number()])),
});
const Operation = z.object({ parameters: z._default(z.array(Parameter), []) });
const Document = z.object({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
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
