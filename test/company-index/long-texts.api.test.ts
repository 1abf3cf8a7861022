/** Tests the IAM rights for the rows with the long texts (over 256 bytes) of unflushed entries. */
import { expect, test } from "vitest";
import { at } from "../harness/client.ts";
import { dataOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const { owner } = await newTeam();

test("each endpoint writes and finds a prospect with a long text", async () => {
  const word = uniqueName();
  const long = `${word} ${"x".repeat(240 - word.length)}`;
  const address = { address1: long, city: "Denver", state: "CO", zip: "80202" };
  const body = { name: long, lat: 39.7, lng: -104.9, address };
  const { id, address: made } = dataOf(await owner.POST("/api/prospects", { body }), 201);
  const query = { search: word };
  const found = async () => {
    const { items } = dataOf(await owner.GET("/api/prospects", { params: { query } }));
    return items.map((item) => item.id);
  };
  expect(await found()).toEqual([id]);
  const pins = dataOf(await owner.GET("/api/prospects/pins", { params: { query } }));
  expect(pins.map((pin) => pin.id)).toEqual([id]);
  dataOf(await owner.PATCH("/api/prospects/{id}", { ...at(id), body: { name: `${long} again` } }));
  dataOf(await owner.PUT("/api/prospects/{id}/tags", { ...at(id), body: { tagIds: [] } }));
  const note = dataOf(await owner.POST("/api/prospects/{id}/notes", { ...at(id), body: { body: `n ${long}` } }), 201);
  dataOf(await owner.PATCH("/api/notes/{id}", { ...at(note.id), body: { body: `m ${long}` } }));
  expect(await found()).toEqual([id]);
  dataOf(await owner.DELETE("/api/notes/{id}", at(note.id)));
  const times = { startAt: "2099-01-01T10:00:00Z", endAt: "2099-01-01T11:00:00Z" };
  const visit = { title: "Visit", ...times };
  const booked = dataOf(await owner.POST("/api/prospects/{id}/appointments", { ...at(id), body: visit }), 201);
  dataOf(await owner.PATCH("/api/appointments/{id}", { ...at(booked.id), body: { title: "Second visit" } }));
  dataOf(await owner.DELETE("/api/appointments/{id}", at(booked.id)));
  if (made === null) throw new Error("the prospect has no address");
  dataOf(await owner.PATCH("/api/addresses/{id}", { ...at(made.id), body: { address2: long } }));
  expect(await found()).toEqual([id]);
  dataOf(await owner.DELETE("/api/prospects/{id}", at(id)));
  expect(await found()).toEqual([]);
});
