/** Tests the pages of service accounts in a real browser: what happens to a new key, and what the tables say about keys and accounts. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import type { NewApiKey } from "../../docs/client/api.ts";
import { newAccount, newKeyOf } from "../harness/api-key.ts";
import { at, type Client, clientOf, clientWith } from "../harness/client.ts";
import { dataOf, present } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { browserForAll, desktop, phone, type Visit, violationsOf, visit } from "./visit.ts";

let team: Team;
let admin: Visit;
const browser = browserForAll(async (opened) => {
  team = await newTeam();
  admin = await visit(opened, team.admin.email, "/service-accounts");
});

const DAY_MS = 86_400_000;
const inDays = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();

const newKey = (id: number, more?: Partial<NewApiKey>, client: Client = team.admin) => newKeyOf(client, id, more);

const press = (page: Page, name: string | RegExp) => page.getByRole("button", { name }).click();
const rowOf = (page: Page, text: string) => page.locator("tbody tr").filter({ hasText: text });

/** Returns everything that the page has on this device: its address, history, storage, caches and text. */
const kept = (page: Page): Promise<string> =>
  page.evaluate(`(async () => {
    const done = (request) => new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    const found = [location.href, history.state, { ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML];
    for (const { name } of await indexedDB.databases()) {
      const database = await done(indexedDB.open(name));
      for (const store of database.objectStoreNames) found.push(await done(database.transaction(store).objectStore(store).getAll()));
      database.close();
    }
    for (const name of await caches.keys()) {
      for (const response of await (await caches.open(name)).matchAll()) found.push(await response.text());
    }
    return JSON.stringify(found);
  })()`);

async function isInMemory({ context, page }: Visit, text: string): Promise<boolean> {
  const session = await context.newCDPSession(page);
  const Chunk = z.object({ chunk: z.string() });
  const chunks: string[] = [];
  session.on("HeapProfiler.addHeapSnapshotChunk", (event) => chunks.push(Chunk.parse(event).chunk));
  await session.send("HeapProfiler.collectGarbage");
  await session.send("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
  await session.detach();
  return chunks.join("").includes(text);
}

test("when the dialog with a new key has closed, neither the device nor the memory has the key", async () => {
  const { page } = admin;
  const { id } = await newAccount(team.owner, { name: "Web form" });
  await page.setViewportSize(phone);
  await page.goto(`/service-accounts/${id}`);
  await press(page, "New key");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Production");
  await dialog.getByLabel("Prospects: export").check();
  await press(page, "30 days");
  await press(page, "Create the key");
  const secret = (await dialog.locator("pre").innerText()).slice("pck_12345678_".length);
  expect(await violationsOf(page)).toEqual([]);
  expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  expect(await isInMemory(admin, secret)).toBe(true);

  await press(page, "I have stored it");
  await rowOf(page, "Production").getByText("Never").waitFor();
  expect(await kept(page)).not.toContain(secret);
  await expect.poll(() => isInMemory(admin, secret), { interval: 1_000 }).toBe(false);
  await page.setViewportSize(desktop);
  const [made] = dataOf(await team.admin.GET("/api/service-accounts/{id}/keys", at(id)));
  expect(made).toMatchObject({ scopes: ["prospects:read", "prospects:export"] });
  const days = (Date.parse(present(made).expiresAt) - Date.now()) / DAY_MS;
  expect(days).toBeGreaterThan(28.9);
  expect(days).toBeLessThan(30);
});

test("the table of keys says which keys end soon, are replaced or have lost their creator, and an admin takes one over", async () => {
  const { page } = admin;
  const { id } = await newAccount(team.owner, { name: "Nightly report" });
  const email = team.owner.email.replace(/^owner@/, "leaving@");
  const person = { email, firstName: "Lea", lastName: "Leaving", role: "admin" } as const;
  const leaving = dataOf(await team.owner.POST("/api/users", { body: person }), 201);
  await newKey(id, { name: "Orphan" }, clientOf(email));
  dataOf(await team.owner.PATCH("/api/users/{id}", { ...at(leaving.id), body: { role: "sales" } }));
  await newKey(id, { name: "Soon", expiresAt: inDays(13.5) });
  await newKey(id, { name: "Later", expiresAt: inDays(15), scopes: ["audit:read", "reference:write"] });
  const used = await newKey(id, { name: "Replaced" });
  dataOf(await clientWith(async () => used.key).GET("/api/prospects"));

  await page.goto(`/service-accounts/${id}`);
  await rowOf(page, "Soon").getByText("14 days left").waitFor();
  expect(await rowOf(page, "Later").getByText("left").count()).toBe(0);
  await rowOf(page, "Later").getByText("Statuses, tags, addresses: change").waitFor();
  await rowOf(page, "Replaced").getByText(`pck_${used.id}…${used.last4}`).waitFor();
  await rowOf(page, "Replaced").getByText("now").waitFor();

  const orphan = rowOf(page, "Orphan");
  await orphan.getByText("Its creator Lea Leaving is disabled or has a lower role now.").waitFor();
  await orphan.getByRole("button", { name: /^Take over/ }).click();
  await press(page, "Take it over");
  await page.getByRole("status").getByText("You answer for the key now.").waitFor();
  await orphan.getByText("Ada Admin").waitFor();
  expect(await orphan.getByRole("button", { name: /^Take over/ }).count()).toBe(0);

  await press(page, /^Rotate Replaced/);
  await press(page, "Make a new key");
  await press(page, "I have stored it");
  const replaced = rowOf(page, "Replaced by");
  await replaced.getByText(", works until ").waitFor();
  await replaced.getByText("1 day left").waitFor();
  expect(await replaced.getByRole("button").allInnerTexts()).toEqual(["Revoke"]);
  expect(await violationsOf(page)).toEqual([]);

  await newKey(id, { name: "Fifth" });
  await press(page, "New key");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Sixth");
  await press(page, "Create the key");
  await dialog.getByRole("alert").getByText("A service account may have at most 5 keys.").waitFor();
  await page.keyboard.press("Escape");
});

test("an account appears as an author and in the list of users, but is not offered as an assignee", async () => {
  const { page, faults } = admin;
  await page.goto("/service-accounts");
  await press(page, "New service account");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Importer");
  await dialog.getByLabel("Imports and assigns prospects").check();
  await press(page, "Save");
  await page.getByText("permissions: Sees all prospects, Imports and assigns prospects").waitFor();
  const id = Number(new URL(page.url()).pathname.split("/").at(-1));
  const { key } = await newKey(id, { name: "Nightly" });
  const program = clientWith(async () => key);
  const prospect = dataOf(await program.POST("/api/prospects", { body: { name: "Ann" } }), 201);
  dataOf(await program.POST("/api/prospects/{id}/notes", { ...at(prospect.id), body: { body: "Hello" } }), 201);
  await page.goto(`/prospects?prospect=${prospect.id}`);
  await page.getByText("Importer (service account)").first().waitFor();
  await page.getByLabel("Assigned to", { exact: true }).click();
  await page.getByRole("option", { name: "Ravi Rep" }).waitFor();
  expect(await page.getByRole("option", { name: "Importer" }).count()).toBe(0);

  await page.goto("/users");
  await rowOf(page, "Importer (service account)").waitFor();
  expect(await rowOf(page, "Importer (service account)").getByRole("button").count()).toBe(0);
  expect(await rowOf(page, "Importer (service account)").innerText()).not.toContain(".invalid");

  await page.getByRole("link", { name: "Service accounts" }).click();
  await page.getByRole("link", { name: "Importer" }).waitFor();
  await rowOf(page, "Importer").getByText("now").waitFor();
  expect(await rowOf(page, "Importer").locator("td").nth(3).innerText()).toBe("1");
  await page.getByRole("link", { name: "Importer" }).click();
  await press(page, "Edit");
  await dialog.getByLabel("Name").fill("Uploader");
  await dialog.getByLabel("Role").selectOption({ label: "Administrator" });
  await press(page, "Save");
  await page.getByText("Administrator · permissions: All").waitFor();
  await press(page, "Delete");
  await dialog.getByText("These keys stop working within a minute: Nightly.").waitFor();
  await press(page, "Delete the account");
  await page.waitForURL("**/service-accounts");
  await rowOf(page, "Uploader").waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Users" }).click();
  await rowOf(page, "Ada Admin").waitFor();
  await rowOf(page, "Uploader").waitFor({ state: "detached" });
  // The list of accounts requests the keys of the deleted account once more, which fails. The closed page of this account requests nothing.
  expect(faults.filter((fault) => !fault.includes(" 409 ") && !fault.endsWith("/keys"))).toEqual([]);
});

test("a rep sees neither the page nor a link to it", async () => {
  const { context, page } = await visit(browser(), team.rep.email, "/service-accounts");
  await page.getByRole("heading", { name: "This page does not exist" }).waitFor();
  expect(await page.getByRole("link", { name: "Service accounts" }).count()).toBe(0);
  await context.close();
});
