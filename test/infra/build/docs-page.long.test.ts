/** Tests the page with the API reference in a real browser. A user signs in with the page's button and then sends a request. */
import { afterAll, expect, test } from "vitest";
import { demoUsers } from "../../../infra/local/demo/users.ts";
import { faultsOf, noBrowser, openBrowser, openContext } from "../../harness/browser.ts";
import { baseUrl } from "../../harness/client.ts";

const browser = noBrowser === undefined ? await openBrowser() : undefined;
afterAll(() => browser?.close());

test("the button signs the selected user in, and a request from the page is answered for this user", async ({
  skip,
}) => {
  if (browser === undefined) return skip(noBrowser);
  const page = await (await openContext(browser)).newPage();
  const faults = faultsOf(page);
  await page.goto(`${baseUrl()}/docs`);
  // All sections of the page are closed at first. A search opens the sections with a result. It also finds words in the summary of an
  // operation.
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
  // The test adds an inline script to the page, whose Content-Security-Policy forbids such scripts. `faults` must then contain a violation.
  // This proves that the check above would have found violations of the policy.
  await page.evaluate(`document.head.append(Object.assign(document.createElement("script"), { text: "0" }))`);
  await expect.poll(() => faults).toEqual([expect.stringContaining("Content Security Policy")]);
});
