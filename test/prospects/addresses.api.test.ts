/** Tests addresses over HTTP. addresses.test.ts and test/http/matrix.api.test.ts test who may see and change an address. */
import { expect, test } from "vitest";
import type { AddressPatch } from "../../docs/client/api.ts";
import { at } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { dataOf, present, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { subscribe } from "../webhooks/subscribed.ts";

const as = await newTeam();

const home = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };

test("addresses are created, read and changed; a computed text follows the change", async () => {
  const answer = await as.rep.POST("/api/addresses", { body: home });
  const made = dataOf(answer, 201);
  const path = `/api/addresses/${made.id}`;
  expect(answer.response.headers.get("location")).toBe(path);
  expect(made).toEqual({ id: made.id, ...home, address2: null, formattedAddress: "1 Main St, Denver, CO 80202" });
  expect(dataOf(await as.viewer.GET("/api/addresses/{id}", at(made.id)))).toEqual(made);
  const formatted = async (body: AddressPatch) =>
    dataOf(await as.rep2.PATCH("/api/addresses/{id}", { ...at(made.id), body })).formattedAddress;
  expect(await formatted({ address2: "Apt 4" })).toBe("1 Main St, Apt 4, Denver, CO 80202");
  expect(await formatted({ formattedAddress: "The corner" })).toBe("The corner");
  expect(await formatted({ zip: "80203" })).toBe("The corner");
  expect(await formatted({ formattedAddress: null, address2: null })).toBe("1 Main St, Denver, CO 80203");
  const wrong = await as.rep.POST("/api/addresses", { body: { ...home, state: "x".repeat(256) } });
  expect(problemOf(wrong, 400, "validation_failed")).toMatchObject([{ pointer: "/state" }]);
});

test("an address that an import has created can be changed", async () => {
  const name = uniqueName();
  const file = `name,address1,city,state,zip\n${name},1 Main St,Denver,CO,80202\n`;
  expect((await as.admin.send("POST", "/api/prospects/import", { body: csvForm(file) })).status).toBe(200);
  const { items } = dataOf(await as.admin.GET("/api/prospects", { params: { query: { search: name } } }));
  const address = present(items[0]?.address);
  const body = { zip: "80203" };
  expect(dataOf(await as.admin.PATCH("/api/addresses/{id}", { ...at(address.id), body }))).toMatchObject(body);
  const { address: shown } = dataOf(await as.admin.GET("/api/prospects/{id}", at(present(items[0]).id)));
  expect(shown).toMatchObject(body);
});

test("a page of addresses names the next page, and the last page names none", async () => {
  for (let i = 0; i < 3; i++) dataOf(await as.rep.POST("/api/addresses", { body: home }), 201);
  const page = async (query: { limit?: number; after?: number }) => {
    const answer = await as.viewer.GET("/api/addresses", { params: { query } });
    return { ids: dataOf(answer).map(({ id }) => id), link: answer.response.headers.get("link") };
  };
  const { ids, link } = await page({ limit: 2 });
  expect(link).toBe(`<?after=${ids[1]}&limit=2>; rel="next"`);
  expect((await page({ after: ids[1] ?? 0 })).link).toBeNull();
  expect((await page({ after: 2 ** 53 - 1, limit: 10 ** 15 })).ids).toEqual([]);
});

test("an address of a hidden or deleted prospect is not listed; its change emits prospect.updated, and a refused change emits nothing", async () => {
  const { id, address } = dataOf(await as.admin.POST("/api/prospects", { body: { address: home } }), 201);
  const place = at(present(address).id);
  const registrations = [{ event: "prospect.updated", filter: { "prospect.id": id } }];
  const { receiver } = await subscribe(as.admin, registrations);
  problemOf(await as.rep.PATCH("/api/addresses/{id}", { ...place, body: { zip: "1" } }), 404, "not_found");
  const listed = async () => dataOf(await as.rep.GET("/api/addresses")).map((one) => one.id);
  expect(await listed()).not.toContain(present(address).id);
  const changed = dataOf(await as.viewer.PATCH("/api/addresses/{id}", { ...place, body: { zip: "80299" } }));
  await receiver.until(1);
  expect(receiver.receipts.map(({ event }) => event.data)).toMatchObject([
    { changedFields: ["address"], prospect: { id, address: changed } },
  ]);
  dataOf(await as.admin.DELETE("/api/prospects/{id}", at(id)));
  expect(await listed()).not.toContain(present(address).id);
});
