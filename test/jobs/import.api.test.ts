/**
 * Tests over HTTP that one request can import a CSV file: which rows, files and users it accepts, and its idempotency. Every endpoint
 * treats imported records like records that were created one by one.
 */
import { randomUUID } from "node:crypto";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { at, type Client } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";
import { bodyOf, dataOf, present, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { Imported, postFile } from "./files-over-http.ts";

const as = await newTeam();
const me = dataOf(await as.rep.GET("/api/me"));
const statuses = dataOf(await as.owner.GET("/api/statuses"));

const post = (body: FormData | string, client: Client = as.owner, headers: Record<string, string> = {}) =>
  client.send("POST", "/api/prospects/import", { body, headers });
const imported = async (text: string, client: Client = as.owner) =>
  bodyOf(await post(csvForm(text), client), 200, Imported);
const list = async (search: string, client: Client = as.owner) =>
  dataOf(await client.GET("/api/prospects", { params: { query: { search, pageSize: 500 } } }));

test("a row becomes a prospect with address, status and its history, assignee, tags and note", async () => {
  const [name, tag, city] = [uniqueName(), uniqueName(), uniqueName()];
  const status = present(statuses[1]);
  const known = dataOf(await as.owner.POST("/api/tags", { body: { value: uniqueName() } }), 201);
  const header = "Name;PHONE;email;lat;lng;address1;address2;city;state;zip;status;assignedTo;tags;notes;whatever";
  const row = `${name};'+1 x;bo@example.com;39.5;-105;1 Main St;;${city};CO;80202;${status.value.toUpperCase()};${me.user.email};"${known.value.toUpperCase()};${tag}";"first\nsecond";x`;
  const { id, ...result } = await imported(`\uFEFF${header}\r\n${row}\r\n`);
  expect(result).toEqual({ imported: 1, updated: 0, skipped: 0, errors: [] });
  const made = present((await list(name)).items[0]);
  const address = { address1: "1 Main St", address2: null, city, state: "CO", zip: "80202" };
  expect(made).toMatchObject({
    name,
    phoneNumber: "+1 x",
    emailAddress: "bo@example.com",
    lat: 39.5,
    lng: -105,
    source: "csv-import",
    currentStatus: { id: status.id },
    assignedTo: { id: me.user.id },
    tags: [{ tag: { id: known.id } }, { tag: { value: tag } }],
    address: { ...address, formattedAddress: `1 Main St, ${city}, CO 80202` },
  });
  const detail = dataOf(await as.rep.GET("/api/prospects/{id}", at(made.id)));
  const change = { status: { id: status.id }, previousStatus: null, source: "csv-import" };
  expect(detail.statusHistory).toMatchObject([change]);
  expect(detail.notes).toMatchObject([{ body: "first\nsecond", createdBy: { email: as.owner.email } }]);
  expect((await list("second", as.rep)).items.map((item) => item.id)).toEqual([made.id]);
  const stored = dataOf(await as.owner.GET("/api/prospects/imports/{id}", at(id)));
  expect(stored).toMatchObject({ id, state: "completed", processed: 1, ...result });
});

test("each row is imported or has one error, with its number in a spreadsheet", async () => {
  const name = uniqueName();
  const rows = [
    "name,email,lat,lng,status",
    `${name} 1,,1,2,`,
    "",
    `${name} 2,nobody,91,x,Nope`,
    `${name} 3,,1,,`,
    `${name} 4,,1,2,,x`,
    `"${name}\n5",,3,4,`,
    `${name} 6`,
  ];
  const result = await imported(rows.join("\n"));
  expect(result).toMatchObject({ imported: 2, skipped: 4 });
  expect(result.errors.map(({ row }) => row)).toEqual([4, 5, 6, 8]);
  expect(result.errors[0]?.message.split("; ")).toHaveLength(4);
  expect(dataOf(await as.owner.GET("/api/prospects/imports/{id}", at(result.id))).errors).toEqual(result.errors);
  expect((await list(name)).items.map((item) => item.name)).toEqual([`${name} 1`, `${name}\n5`]);
});

test("unassigned rows are assigned to a rep who may see own prospects only", async () => {
  const name = uniqueName();
  await imported(`name,lat,lng\n${name},1,2\n`, as.importer);
  expect((await list(name, as.importer)).items).toMatchObject([{ assignedTo: { email: as.importer.email } }]);
  expect((await list(name, as.rep)).items).toEqual([]);
});

test("the permission is checked before the body", async () => {
  problemOf(await post(csvForm("nonsense"), as.rep), 403, "permission_denied");
  problemOf(await post("nonsense", as.viewer), 403, "permission_denied");
});

test("requests with one key are one import even if their form boundaries differ, and another file under the key is refused", async () => {
  const [name, key] = [uniqueName(), randomUUID()];
  const text = `name,lat,lng\n${name},1,2\n`;
  const headers = { "Idempotency-Key": key };
  const first = bodyOf(await post(csvForm(text), as.owner, headers), 200, Imported);
  const again = await post(csvForm(text), as.owner, headers);
  expect(bodyOf(again, 200, Imported)).toEqual(first);
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  problemOf(await post(csvForm(`${text}x,1,2\n`), as.owner, headers), 422, "idempotency_mismatch");
  expect((await list(name)).total).toBe(1);
});

test("a repeated dry run with the same idempotency key gets the stored result", async () => {
  const headers = { "Idempotency-Key": randomUUID() };
  const dryRun = () => postFile(as.owner, "name,lat,lng\nx,1,2\n", "?dryRun=true", headers);
  const first = await dryRun();
  const again = await dryRun();
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  const DryRun = z.looseObject({ id: z.null(), dryRun: z.literal(true) });
  expect(bodyOf(again, 200, DryRun)).toEqual(bodyOf(first, 200, DryRun));
});

test("a file of 10 001 rows is refused, and the answer names the import job", async () => {
  const answer = await post(csvForm(`name,status\n${"x,y\n".repeat(10_001)}`));
  problemOf(answer, 413, "payload_too_large");
  expect(answer.text).toContain("POST /api/prospects/imports");
});

test("further parts and fields of the form are ignored", async () => {
  const name = uniqueName();
  const form = new FormData();
  form.append("note", "x".repeat(50_000));
  form.append("file", new Blob([`name,lat,lng\n${name},1,2\n`]), "a.csv");
  for (const field of ["other", "file"]) form.append(field, new Blob(["name,lat,lng\nnever,1,2\n"]), "b.csv");
  expect(bodyOf(await post(form), 200, Imported)).toMatchObject({ imported: 1 });
  expect((await list(name)).total).toBe(1);
});

test("an invalid byte in UTF-8 is named with its row and column, in a dry run too", async () => {
  const bytes = Buffer.from("\xef\xbb\xbfname,lat,lng,Vorname\nBo,1,2,x\nCy,1,2,Jos\xe9\n", "latin1");
  for (const query of [
    "",
    "?dryRun=true",
    "?matchBy=emailAddress&onMatch=update&mapping=%7B%22Vorname%22%3A%22email%22%7D",
  ]) {
    const answer = await postFile(as.owner, Uint8Array.from(bytes), query);
    problemOf(answer, 400, "validation_failed");
    expect(answer.text).toContain('Row 3 has a byte in the column \\"Vorname\\"');
  }
});

test("every endpoint works with an imported prospect", async () => {
  // In a new company no function has reserved ids yet, so the test also covers the first reservation.
  const { owner } = await newTeam();
  const name = uniqueName();
  const row = `${name},1 Main St,Denver,CO,80202,39.7,-105,Has a dog,Tag of ${name},New`;
  const file = `name,address1,city,state,zip,lat,lng,notes,tags,status\n${row}\n`;
  expect(await imported(file, owner)).toMatchObject({ imported: 1, skipped: 0 });
  const { id, address } = present((await list(name, owner)).items[0]);
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
  const { id } = dataOf(await owner.POST("/api/prospects", { body: { name: "First" } }), 201);
  const address = { address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" };
  const patch = { ...at(id), body: { address } };
  expect(dataOf(await owner.PATCH("/api/prospects/{id}", patch)).address).toMatchObject(address);
});

describe("refuses the whole file and writes nothing", () => {
  const crlf = (...lines: string[]) => lines.join("\r\n");
  const part = (name: string, content: string) =>
    crlf("--b", `Content-Disposition: form-data; name="${name}"; filename="../../etc/x.csv"`, "", content, "");
  const good = "name,lat,lng\nnever,1,2\n";
  const textForm = new FormData();
  textForm.append("file", good);

  const raw: readonly [string, string, string?][] = [
    ["a form without an end", part("file", good)],
    ["a body that is not a form", "nonsense"],
    ["ten thousand parts", `${part("file", good).repeat(10_000)}--b--`],
    ["a header of a megabyte", crlf("--b", `X: ${"x".repeat(1_000_000)}`, "", good, "--b--", "")],
    ["no boundary", part("file", good), "multipart/form-data"],
  ];
  test.each(raw)("%s", async (_, body, type = "multipart/form-data; boundary=b") => {
    problemOf(await post(body, as.owner, { "Content-Type": type }), 400, "validation_failed");
  });

  const files: readonly [string, FormData][] = [
    ["another field", csvForm(good, "csv")],
    ["text in the field of the file", textForm],
    ["no file", new FormData()],
    ["an empty file", csvForm("")],
    ["no known column", csvForm("a,b\n1,2\n")],
    ["gzip", csvForm(Uint8Array.from(gzipSync(Buffer.alloc(50_000_000))))],
    ["NULs", csvForm("\0".repeat(1_000))],
  ];
  test.each(files)("%s", async (_, form) => {
    problemOf(await post(form), 400, "validation_failed");
  });

  test("a body of JSON", async () => {
    problemOf(await post("{}", as.owner, { "Content-Type": "application/json" }), 415, "unsupported_media_type");
  });

  // The function refuses the first two files. Lambda refuses the third one, because its base64 text is too long for an event of 6 MB. API
  // Gateway refuses the last one, because a request body may have at most 10 MB.
  test.each([4_000_000, 4_600_000, 9_900_000, 11_000_000])("a file over %d bytes, and names the job", async (bytes) => {
    const answer = await post(csvForm(`${good}${"never,1,2\n".repeat(bytes / 10)}`));
    problemOf(answer, 413, "payload_too_large");
    expect(answer.text).toContain("import job: POST /api/prospects/imports");
  });

  test("none of these files left a prospect", async () => {
    expect((await list("never")).total).toBe(0);
  });
});
