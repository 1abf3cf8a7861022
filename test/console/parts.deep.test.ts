/** Tests in a real browser that the console shows a message where it cannot load a part of its code, and that all other parts work. */
import { expect, test } from "vitest";
import { browserForAll, desktop, visit } from "./visit.ts";

const browser = browserForAll(async () => undefined);

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
