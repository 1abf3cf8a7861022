/** Tests parts of pages in a real browser: imports, the code that verifies a signature, keys, secrets, and changes by somebody else. */
import { stripTypeScriptTypes } from "node:module";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod/mini";
import { newAccount, newKeyOf } from "../harness/api-key.ts";
import { at, baseUrl, flushAuthorizers } from "../harness/client.ts";
import { startReceiver } from "../harness/receiver.ts";
import { ringOf } from "../harness/rings.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { browserForAll, chooseCsv, desktop, type Visit, visit } from "./visit.ts";

let team: Team;
let admin: Visit;
const browser = browserForAll(async (opened) => {
  team = await newTeam();
  admin = await visit(opened, team.admin.email, "/files");
});

test("the field for a file looks different while a file is over it, and takes the file that is dropped", async () => {
  const { page } = admin;
  const field = page.locator("[data-over]");
  const look = (): Promise<string[]> =>
    page.evaluate(`(({ borderTopColor, backgroundColor }) => [borderTopColor, backgroundColor])(
      getComputedStyle(document.querySelector("[data-over]")))`);
  const dataTransfer = await page.evaluateHandle(`(() => {
    const data = new DataTransfer();
    data.items.add(new File(["name,lat,lng\\nAnn,39.75,-104.95\\n"], "doors.csv", { type: "text/csv" }));
    return data;
  })()`);
  await field.waitFor();
  const usual = await look();
  for (const end of ["dragleave", "drop"]) {
    await field.dispatchEvent("dragover", { dataTransfer });
    await expect.poll(look).toEqual(usual.map((colour) => expect.not.stringContaining(colour)));
    await field.dispatchEvent(end, { dataTransfer });
    await expect.poll(look).toEqual(usual);
  }
  await page.getByRole("status").getByText("1 prospect would be created.").waitFor();
});

test("a dry run says how many faulty values would be left empty", async () => {
  const { page } = admin;
  const buffer = Buffer.from("Full Name,Latitude,Longitude,Sales Rep\nAnn,39.75,-104.95,No One\n");
  await chooseCsv(page, buffer);
  await page.getByRole("status").getByText("1 faulty value would be left empty").waitFor();
});

test("territories in another coordinate system are refused by its name", async () => {
  const { page } = admin;
  const crs = { type: "name", properties: { name: "EPSG:3857" } };
  const coordinates = [ringOf("0 0, 1 0, 1 1, 0 0")];
  const features = [{ type: "Feature", properties: {}, geometry: { type: "Polygon", coordinates } }];
  const buffer = Buffer.from(JSON.stringify({ type: "FeatureCollection", crs, features }));
  await page.goto("/territories");
  await page.getByLabel("GeoJSON file").setInputFiles({ name: "a.json", mimeType: "application/json", buffer });
  await page.getByRole("alert").getByText("EPSG:3857").waitFor();
  expect(dataOf(await team.admin.GET("/api/territories"))).toEqual([]);
});

test("a printed page has no buttons in its head", async () => {
  const { page } = admin;
  const { id } = dataOf(await team.admin.POST("/api/territories", { body: { name: "Elm" } }), 201);
  await page.goto(`/territories/${id}/print`);
  const button = page.getByRole("button", { name: "Print" });
  await button.waitFor();
  await page.emulateMedia({ media: "print" });
  await button.waitFor({ state: "hidden" });
  await page.emulateMedia({ media: null });
});

const Example = z.object({
  isGenuine: z.custom<(body: Buffer, signature: string, secret: string) => boolean>(
    (value) => typeof value === "function",
  ),
});

test("the page of a webhook shows warnings and sends a sample of a chosen event, and its code verifies the signature", async () => {
  const receiver = await startReceiver((_, response) => response.writeHead(204).end());
  onTestFinished(receiver.close);
  const body = { name: "CRM", url: receiver.url, registrations: [{ event: "prospect.create" }] };
  const { id, secretKey } = dataOf(await team.admin.POST("/api/webhooks", { body }), 201);
  const { page } = admin;
  await page.goto(`/webhooks/${id}`);
  await page.getByText("Did you mean prospect.created?").waitFor();
  await page.getByLabel("Event to test").selectOption("note.created");
  await page.getByRole("button", { name: "Send a test event" }).click();
  await receiver.until(1);
  const { headers, body: sent, event } = present(receiver.receipts[0]);
  expect(event).toMatchObject({ event: "note.created", test: true });
  const help = page.locator("section").filter({ has: page.getByRole("heading", { name: "Check the signature" }) });
  const [name = ""] = await help.locator("p code").allInnerTexts();
  const signature = String(headers[name.toLowerCase()]);
  const code = stripTypeScriptTypes(await help.locator("pre").innerText());
  const { isGenuine } = Example.parse(
    await import(`data:text/javascript,${encodeURIComponent(`${code}\nexport { isGenuine };`)}`),
  );
  expect(isGenuine(Buffer.from(sent), signature, secretKey)).toBe(true);
  expect(isGenuine(Buffer.from(`${sent} `), signature, secretKey)).toBe(false);
  expect(isGenuine(Buffer.from(sent), signature.slice(2), secretKey)).toBe(false);
  expect(isGenuine(Buffer.from(sent), signature, `${secretKey}x`)).toBe(false);
});

test("an admin creates, rotates and revokes a key, and each time the service refuses the old one", async () => {
  const { page } = admin;
  const dialog = page.getByRole("dialog");
  const press = (name: string | RegExp) => page.getByRole("button", { name }).click();
  const newKey = async (): Promise<string> => {
    await dialog.getByRole("heading", { name: "The new key" }).waitFor();
    const key = await dialog.locator("pre").innerText();
    await press("I have stored it");
    await dialog.waitFor({ state: "detached" });
    return key;
  };
  const statusOf = async (key: string): Promise<number> => {
    await flushAuthorizers();
    return (await fetch(`${baseUrl()}/api/prospects`, { headers: { Authorization: `Bearer ${key}` } })).status;
  };
  await page.goto("/service-accounts");
  await press("New service account");
  await dialog.getByLabel("Name").fill("Web form");
  await press("Save");
  await page.getByRole("heading", { name: "Web form" }).waitFor();
  await press("New key");
  await dialog.getByLabel("Name").fill("Production");
  await press("Create the key");
  const first = await newKey();
  expect(await statusOf(first)).toBe(200);

  await press(/^Rotate Production/);
  await dialog.getByLabel("The old key still works").selectOption({ label: "It stops within a minute" });
  await press("Make a new key");
  const second = await newKey();
  expect(await Promise.all([first, second].map(statusOf))).toEqual([401, 200]);

  await press(/^Revoke Production/);
  await press("Revoke it");
  await dialog.waitFor({ state: "detached" });
  expect(await statusOf(second)).toBe(401);
});

const newWebhook = async (name: string): Promise<number> => {
  const body = { name, url: "https://example.com/hook", registrations: [{ event: "note.created" as const }] };
  return dataOf(await team.admin.POST("/api/webhooks", { body }), 201).id;
};
test("a secret stays until the user has stored it: Back, Escape, a reload and the close button ask first", async () => {
  const { page } = admin;
  const dialog = page.getByRole("dialog");
  const press = (name: string | RegExp) => page.getByRole("button", { name, exact: true }).click();
  const ways = [
    () => page.goBack(),
    () => page.keyboard.press("Escape"),
    () => page.keyboard.press("Escape"),
    () => dialog.getByRole("button", { name: "Close", exact: true }).click(),
  ];
  await newKeyOf(team.admin, (await newAccount(team.owner, { name: "Asking" })).id);
  await newWebhook("Asking");
  for (const [list, open, fields, submit, requests] of [
    ["/service-accounts", "New key", [["Name", "Another"]], "Create the key", "**/keys"],
    ["/service-accounts", /^Rotate Production/, [], "Make a new key", "**/rotate"],
    ["/webhooks", "New secret …", [], "Make a new secret", "**/rotate-secret"],
    [
      "/webhooks",
      "New webhook",
      [
        ["Name", "Another"],
        ["URL", "https://example.com/other"],
      ],
      "Create the webhook",
      "**/api/webhooks",
    ],
  ] as const) {
    await page.goto("/users");
    await page.locator(`nav a[href="${list}"]`).click();
    if (open !== "New webhook") await page.getByRole("link", { name: "Asking" }).click();
    await press(open);
    await dialog.waitFor();
    const { pathname } = new URL(page.url());
    for (const [label, text] of fields) await dialog.getByLabel(label, { exact: true }).fill(text);
    const answered = Promise.withResolvers<void>();
    await page.route(requests, async (route) => {
      if (route.request().method() === "POST") await answered.promise;
      await route.continue();
    });
    await press(submit);
    for (const leave of ways.slice(0, 3)) await leave();
    answered.resolve();
    const shown = dialog.locator("pre");
    const secret = await shown.innerText();
    await page.unroute(requests);
    const question = dialog.getByRole("alert").filter({ hasText: "Have you stored the" });
    expect(await question.count()).toBe(0);
    for (const leave of ways) {
      await leave();
      await question.waitFor();
      expect(await shown.innerText()).toBe(secret);
      expect(new URL(page.url()).pathname).toBe(pathname);
    }
    const asked = page.waitForEvent("dialog");
    await page.evaluate("void setTimeout(() => location.reload())");
    await (await asked).dismiss();
    expect(await shown.innerText()).toBe(secret);
    await press("I have stored it");
    await dialog.waitFor({ state: "detached" });
    if (open === "New webhook") await page.getByRole("heading", { name: "Another" }).waitFor();
    await page.goBack();
    await page.waitForURL(open === "New webhook" ? "**/webhooks" : `**${list}`);
  }
});

test("after somebody else has changed a record, a refused action shows the present state", async () => {
  const { page } = admin;
  const dialog = page.getByRole("dialog");
  const press = (name: string | RegExp) => page.getByRole("button", { name }).click();
  const rows = page.locator("tbody tr");
  const { id } = await newAccount(team.owner, { name: "Shared" });
  const { id: keyId } = await newKeyOf(team.admin, id);
  await page.goto(`/service-accounts/${id}`);
  await press(/^Revoke Production/);
  dataOf(await team.owner.DELETE("/api/service-accounts/{id}/keys/{keyId}", { params: { path: { id, keyId } } }));
  await press("Revoke it");
  await page.getByText("There is no key yet.").waitFor();
  await page.keyboard.press("Escape");
  await press("Edit");
  dataOf(await team.owner.DELETE("/api/service-accounts/{id}", at(id)));
  await press("Save");
  await page.getByRole("heading", { name: "The console could not load the service account" }).waitFor();

  const webhook = await newWebhook("Shared");
  await page.goto(`/webhooks/${webhook}`);
  await press(/^Delete the registration/);
  const { registrations } = dataOf(await team.admin.GET("/api/webhooks/{id}", at(webhook)));
  const path = { id: webhook, registrationId: present(registrations[0]).id };
  dataOf(await team.admin.DELETE("/api/webhooks/{id}/registrations/{registrationId}", { params: { path } }));
  await dialog.getByRole("button", { name: "Delete the registration" }).click();
  await page.getByText("it is registered for no event").waitFor();
  expect(await rows.count()).toBe(0);
});

test("where code cannot be loaded, the page says so in its place, and other pages work", async () => {
  const { context, page } = await visit(browser(), "admin@acme.test", "/users", desktop, { serviceWorkers: "block" });
  await page.getByRole("heading", { name: "Users" }).waitFor();
  const missing = /\/assets\/(?:sign-out|page)-.*\.js$/;
  await page.route(missing, (route) => route.abort());

  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("alert").getByText("Its code could not be loaded.").waitFor();
  await page.getByRole("link", { name: "Webhooks" }).click();
  await page.getByRole("heading", { name: "The console could not load the page" }).waitFor();
  await page.getByRole("link", { name: "Users" }).click();
  await page.getByRole("heading", { name: "Users" }).waitFor();

  await page.getByRole("link", { name: "Webhooks" }).click();
  await page.unroute(missing);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("heading", { name: "Webhooks", exact: true }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/webhooks");
  await context.close();
});
