/** Tests addresses over HTTP: single addresses, the list, and the addresses of prospects. */
import { afterEach, describe, expect, test } from "vitest";
import type { Address, AddressPatch, NewProspect, Prospect } from "../../docs/client/api.ts";
import { at, send, tokenOf } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { startReceiver } from "../harness/receiver.ts";
import { dataOf, present, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const home = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const create = async (body: AddressPatch = {}, client = as.rep): Promise<Address> =>
  dataOf(await client.POST("/api/addresses", { body: { ...home, ...body } }), 201);

async function createProspect(body: NewProspect): Promise<Prospect> {
  const made = dataOf(await as.admin.POST("/api/prospects", { body }), 201);
  cleanUps.push(() => as.admin.DELETE("/api/prospects/{id}", at(made.id)));
  return made;
}

const addressOf = async (prospectId: number) =>
  dataOf(await as.admin.GET("/api/prospects/{id}", at(prospectId))).address;

const { id: unchanged } = await create();

describe("addresses", () => {
  test("an address that an import has created can be changed", async () => {
    const name = uniqueName();
    const file = `name,address1,city,state,zip\n${name},1 Main St,Denver,CO,80202\n`;
    const headers = { Authorization: `Bearer ${await tokenOf(as.admin.email)}` };
    expect((await send("POST", "/api/prospects/import", { headers, body: csvForm(file) })).status).toBe(200);
    const { items } = dataOf(await as.admin.GET("/api/prospects", { params: { query: { search: name } } }));
    const address = items[0]?.address ?? expect.fail("the import has made no address");
    const body = { zip: "80203" };
    expect(dataOf(await as.admin.PATCH("/api/addresses/{id}", { ...at(address.id), body }))).toMatchObject(body);
    expect(await addressOf(items[0]?.id ?? 0)).toMatchObject(body);
  });

  test("are created, read and changed; a computed text follows the change", async () => {
    const answer = await as.rep.POST("/api/addresses", { body: home });
    const made = dataOf(answer, 201);
    const path = `/api/addresses/${made.id}`;
    expect(answer.response.headers.get("location")).toBe(path);
    expect(made).toEqual({ id: made.id, ...home, address2: null, formattedAddress: "1 Main St, Denver, CO 80202" });
    expect(dataOf(await as.viewer.GET("/api/addresses/{id}", at(made.id)))).toEqual(made);
    expect(dataOf(await as.rep.PATCH("/api/addresses/{id}", { ...at(made.id), body: {} }))).toEqual(made);
    const formatted = async (body: AddressPatch) =>
      dataOf(await as.rep2.PATCH("/api/addresses/{id}", { ...at(made.id), body })).formattedAddress;
    expect(await formatted({ address2: "Apt 4" })).toBe("1 Main St, Apt 4, Denver, CO 80202");
    expect(await formatted({ formattedAddress: "The corner" })).toBe("The corner");
    expect(await formatted({ zip: "80203" })).toBe("The corner");
    expect(await formatted({ formattedAddress: null, address2: null })).toBe("1 Main St, Denver, CO 80203");
    expect(dataOf(await as.rep.GET("/api/addresses/{id}", at(made.id)))).toMatchObject({
      zip: "80203",
      address2: null,
    });
  });

  test("the list contains each address of the company once, including inline addresses, and no address of another company", async () => {
    const made = await Promise.all(Array.from({ length: 5 }, () => create()));
    const inline = (await createProspect({ address: home })).address;
    const foreign = await create({}, as.otherRep);
    const beyond = await as.viewer.GET("/api/addresses", {
      params: { query: { after: 2 ** 53 - 1, limit: 10 ** 15 } },
    });
    expect(dataOf(beyond)).toEqual([]);
    const seen: number[] = [];
    for (let after = 0, more = true; more; ) {
      const page = dataOf(await as.viewer.GET("/api/addresses", { params: { query: { limit: 60, after } } }));
      seen.push(...page.map(({ id }) => id));
      after = seen.at(-1) ?? 0;
      more = page.length === 60;
    }
    expect(seen).toEqual([...new Set(seen)].toSorted((a, b) => a - b));
    expect(seen).toEqual(expect.arrayContaining([...made, inline].map((address) => address?.id)));
    expect(seen).not.toContain(foreign.id);
    const whole = dataOf(await as.viewer.GET("/api/addresses")).map(({ id }) => id);
    expect(whole).toEqual(seen.slice(0, 500));
    const first = await as.viewer.GET("/api/addresses", { params: { query: { limit: 2 } } });
    expect(first.response.headers.get("link")).toBe(`<?after=${seen[1]}&limit=2>; rel="next"`);
    const last = await as.viewer.GET("/api/addresses", { params: { query: { after: seen.at(-2) ?? 0 } } });
    expect(last.response.headers.get("link")).toBeNull();
    for (const query of ["limit=0", "limit=x", "after=-1", "after=1.5"]) {
      problemOf(await as.rep("GET", `/api/addresses?${query}`), 400, "validation_failed");
    }
  });

  test.each<[string, object]>([
    ["/address1", { address1: "" }],
    ["/city", { city: null }],
    ["/zip", { zip: 80202 }],
    ["/state", { state: "x".repeat(256) }],
    ["/formattedAddress", { formattedAddress: 5 }],
  ])("an error at %s is reported", async (pointer, body) => {
    const made = await as.rep("POST", "/api/addresses", { ...home, ...body });
    for (const answer of [made, await as.rep("PATCH", `/api/addresses/${unchanged}`, body)]) {
      expect(problemOf(answer, 400, "validation_failed").map((fault) => fault.pointer)).toEqual([pointer]);
    }
  });

  test("a rep gets 404 for the addresses of other reps' prospects, and a refused change emits no event", async () => {
    const receiver = await startReceiver();
    cleanUps.push(receiver.close);
    const { id, address } = await createProspect({ name: uniqueName(), address: home });
    const body = { name: "A", url: receiver.url, registrations: [{ event: "prospect.updated" }] };
    const { id: webhookId } = dataOf(await as.admin.POST("/api/webhooks", { body }), 201);
    cleanUps.push(() => as.admin.DELETE("/api/webhooks/{id}", at(webhookId)));
    const addressId = present(address).id;
    problemOf(await as.rep.GET("/api/addresses/{id}", at(addressId)), 404, "not_found");
    problemOf(await as.rep.PATCH("/api/addresses/{id}", { ...at(addressId), body: { zip: "1" } }), 404, "not_found");
    problemOf(await as.rep.POST("/api/prospects", { body: { addressId } }), 400, "validation_failed");
    expect(dataOf(await as.rep.GET("/api/addresses")).map((one) => one.id)).not.toContain(addressId);
    dataOf(
      await as.admin.PATCH("/api/prospects/{id}", { ...at(id), body: { name: "the change that the receiver gets" } }),
    );
    await receiver.until(1);
    expect(receiver.receipts.map(({ event }) => event.data)).toMatchObject([{ changedFields: ["name"] }]);
    expect(await addressOf(id)).toEqual(address);
  });
});

describe("the address of a prospect", () => {
  test("shows a change on every prospect that has the address, and on no prospect that gave it up", async () => {
    const shared = await create();
    const stays = await createProspect({ addressId: shared.id });
    const movesOut = await createProspect({ addressId: shared.id });
    const movesIn = await createProspect({ address: home });
    expect(stays.address).toEqual(shared);
    dataOf(await as.admin.PATCH("/api/prospects/{id}", { ...at(movesOut.id), body: { addressId: null } }));
    dataOf(await as.admin.PATCH("/api/prospects/{id}", { ...at(movesIn.id), body: { addressId: shared.id } }));
    const changed = dataOf(
      await as.viewer.PATCH("/api/addresses/{id}", { ...at(shared.id), body: { address1: "9 Oak St" } }),
    );
    expect(changed.formattedAddress).toBe("9 Oak St, Denver, CO 80202");
    expect(await addressOf(stays.id)).toEqual(changed);
    expect(await addressOf(movesIn.id)).toEqual(changed);
    expect(await addressOf(movesOut.id)).toBeNull();
    const own = await createProspect({ address: home });
    dataOf(await as.viewer.PATCH("/api/addresses/{id}", { ...at(present(own.address).id), body: { city: "Aurora" } }));
    expect((await addressOf(own.id))?.city).toBe("Aurora");
  });

  test("a change emits prospect.updated", async () => {
    const receiver = await startReceiver();
    cleanUps.push(receiver.close);
    const { id, address } = await createProspect({ name: uniqueName(), address: home });
    const registrations = [{ event: "prospect.updated", filter: { "prospect.id": id } }];
    const webhook = await as.admin.POST("/api/webhooks", { body: { name: "A", url: receiver.url, registrations } });
    const { id: webhookId } = dataOf(webhook, 201);
    cleanUps.push(() => as.admin.DELETE("/api/webhooks/{id}", at(webhookId)));
    const changed = dataOf(
      await as.viewer.PATCH("/api/addresses/{id}", { ...at(present(address).id), body: { zip: "80299" } }),
    );
    await receiver.until(1);
    const { data } = receiver.receipts[0]?.event ?? {};
    expect(data).toMatchObject({ changedFields: ["address"], prospect: { id, address: changed } });
  });
});
