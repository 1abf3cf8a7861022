/** Tests that every endpoint treats imported records like records that were created one by one. */
import { expect, test } from "vitest";
import { at } from "../harness/client.ts";
import { bodyOf, dataOf, Identified, present, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { postFile } from "./files-over-http.ts";

const HEADER = "name,address1,city,state,zip,lat,lng,notes,tags,status";
const fileOf = (name: string): string =>
  `${HEADER}\n${name},1 Main St,Denver,CO,80202,39.7,-105,Has a dog,Tag of ${name},New\n`;

test("every endpoint works with an imported prospect", async () => {
  // In a new company no function has reserved ids yet, so the test also covers the first reservation.
  const { owner } = await newTeam();
  const name = uniqueName();
  expect((await postFile(owner, fileOf(name))).body).toMatchObject({ imported: 1, skipped: 0 });
  const listed = dataOf(await owner.GET("/api/prospects", { params: { query: { search: name } } }));
  const { id, address } = present(listed.items[0]);
  const detail = dataOf(await owner.GET("/api/prospects/{id}", at(id)));
  expect(detail).toMatchObject({ name, tags: [{ tag: { value: `Tag of ${name}` } }], notes: [{ body: "Has a dog" }] });

  const [note] = dataOf(await owner.GET("/api/prospects/{id}/notes", at(id)));
  const noteId = present(note).id;
  dataOf(await owner.GET("/api/notes/{id}", at(noteId)));
  dataOf(await owner.PATCH("/api/notes/{id}", { ...at(noteId), body: { body: "Has two dogs" } }));
  dataOf(await owner.DELETE("/api/notes/{id}", at(noteId)));
  problemOf(await owner.GET("/api/notes/{id}", at(noteId)), 404, "not_found");
  dataOf(await owner.POST("/api/prospects/{id}/notes", { ...at(id), body: { body: "Called" } }), 201);

  const addressId = present(address).id;
  const own = async () => dataOf(await owner.GET("/api/addresses")).filter((entry) => entry.id === addressId);
  expect(await own()).toHaveLength(1);
  dataOf(await owner.GET("/api/addresses/{id}", at(addressId)));
  const linked = dataOf(await owner.POST("/api/prospects", { body: { name, addressId } }), 201);
  dataOf(await owner.PATCH("/api/addresses/{id}", { ...at(addressId), body: { address1: "2 Main St" } }));
  expect(await own()).toMatchObject([{ address1: "2 Main St" }]);
  for (const holder of [id, linked.id]) {
    const shown = dataOf(await owner.GET("/api/prospects/{id}", at(holder))).address;
    expect(shown).toMatchObject({ id: addressId, address1: "2 Main St" });
  }

  const [, status] = dataOf(await owner.GET("/api/statuses"));
  dataOf(await owner.PATCH("/api/prospects/{id}", { ...at(id), body: { currentStatusId: present(status).id } }));
  expect(dataOf(await owner.GET("/api/prospects/{id}", at(id))).statusHistory).toHaveLength(2);

  const times = { startAt: "2099-01-01T10:00:00Z", endAt: "2099-01-01T11:00:00Z" };
  const visit = { title: "Visit", ...times };
  const made = dataOf(await owner.POST("/api/prospects/{id}/appointments", { ...at(id), body: visit }), 201);
  dataOf(await owner.GET("/api/appointments/{id}", at(made.id)));
  dataOf(await owner.PATCH("/api/appointments/{id}", { ...at(made.id), body: { title: "Second visit" } }));
  dataOf(await owner.DELETE("/api/appointments/{id}", at(made.id)));

  const registration = { event: "prospect.updated", triggerMode: "manual", label: "Send" } as const;
  const hook = { name, url: "http://127.0.0.1:9", registrations: [registration] };
  dataOf(await owner.POST("/api/webhooks", { body: hook }), 201);
  const [action] = dataOf(await owner.GET("/api/prospects/{id}/actions", at(id)));
  const { registrationId } = present(action);
  const triggered = await owner.POST("/api/prospects/{id}/actions/{registrationId}", {
    params: { path: { id, registrationId } },
  });
  dataOf(triggered, 202);

  dataOf(await owner.PUT("/api/prospects/{id}/tags", { ...at(id), body: { tagIds: [] } }));
  const elsewhere = { address1: "3 Main St", city: "Denver", state: "CO", zip: "80202" };
  const moved = dataOf(await owner.PATCH("/api/prospects/{id}", { ...at(id), body: { address: elsewhere } }));
  expect(moved.address).toMatchObject(elsewhere);
  expect(dataOf(await owner.DELETE("/api/prospects/{id}", at(id)))).toEqual({ id });
});

test("a PATCH of a company's first prospect may create the company's first address", async () => {
  const { owner } = await newTeam();
  const { id } = bodyOf(await owner("POST", "/api/prospects", { name: "First" }), 201, Identified);
  const address = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };
  const patch = { ...at(id), body: { address } };
  expect(dataOf(await owner.PATCH("/api/prospects/{id}", patch)).address).toMatchObject(address);
});
