/** Tests the CSV export over HTTP: columns, filters and visible prospects. */
import { parse } from "csv-parse/sync";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { exportColumns } from "#shared/prospects/csv/format.ts";
import { at, type Client } from "../harness/client.ts";
import { bodyOf, dataOf, Identified, present, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { endedExport } from "../jobs/files-over-http.ts";

const as = await newTeam();
const me = dataOf(await as.rep.GET("/api/me"));

async function exported(query: string, client: Client = as.owner): Promise<Record<string, string>[]> {
  const answer = await client("GET", `/api/prospects/export${query}`);
  expect(answer.status, answer.text).toBe(200);
  expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  expect(answer.headers.get("content-disposition")).toBe('attachment; filename="prospects.csv"');
  const [head = "", ...rest] = answer.text.split("\r\n");
  expect(head).toBe(
    "id,name,phone,email,lat,lng,address1,address2,city,state,zip,status,assignedTo,assignedToEmail,tags,notes,createdBy,source,createdAt",
  );
  expect(rest.at(-1)).toBe("");
  return parse(answer.text, { columns: true, record_delimiter: "\r\n" });
}

test("each column holds its field, and no cell is a formula", async () => {
  const city = uniqueName();
  const status = present(dataOf(await as.rep.GET("/api/statuses"))[0]);
  const tags = await Promise.all(
    [uniqueName(), `=${uniqueName()}`].map(async (value) =>
      dataOf(await as.owner.POST("/api/tags", { body: { value } }), 201),
    ),
  );
  const address = { address1: "1 Main St", address2: "Apt 2", city, state: "CO", zip: "80202" };
  const body = {
    name: '=HYPERLINK("x")',
    phoneNumber: "+1 (303) 555-0142",
    emailAddress: "maria@example.com",
    lat: 39.5,
    lng: -1.5e-7,
    address,
    currentStatusId: status.id,
    assignedToUserId: me.user.id,
    source: "'-door",
  };
  const made = dataOf(await as.owner.POST("/api/prospects", { body }), 201);
  const tagIds = tags.map(({ id }) => id).reverse();
  await as.owner.PUT("/api/prospects/{id}/tags", { ...at(made.id), body: { tagIds } });
  for (const text of ["the first", 'the newest: "quotes",\r\nand\nbreaks']) {
    dataOf(await as.rep.POST("/api/prospects/{id}/notes", { ...at(made.id), body: { body: text } }), 201);
  }
  const [row, ...others] = await exported(`?city=${city}`);
  expect(others).toEqual([]);
  expect(Object.keys(row ?? {})).toEqual([...exportColumns]);
  expect(row).toEqual({
    id: String(made.id),
    name: `'=HYPERLINK("x")`,
    phone: "+1 (303) 555-0142",
    email: "maria@example.com",
    lat: "39.5",
    lng: "-0.00000015",
    ...address,
    status: status.value,
    assignedTo: "Ravi Rep",
    assignedToEmail: me.user.email,
    tags: `'${tags[1]?.value};${tags[0]?.value}`,
    notes: 'the newest: "quotes",\r\nand\nbreaks',
    createdBy: "Olga Owner",
    source: "''-door",
    createdAt: made.createdAt,
  });
});

test("the export has the rows of the list in the order of the list, for each filter and caller", async () => {
  const name = uniqueName();
  const other = dataOf(await as.rep2.GET("/api/me")).user.id;
  for (let i = 0; i < 12; i++) {
    const assignedToUserId = [me.user.id, other, null][i % 3] ?? null;
    dataOf(await as.owner.POST("/api/prospects", { body: { name, lat: i, lng: -i, assignedToUserId } }), 201);
  }
  const gone = dataOf(await as.owner.POST("/api/prospects", { body: { name } }), 201);
  await as.owner.DELETE("/api/prospects/{id}", at(gone.id));
  const filters = [
    "",
    "&bbox=-6,2,-2,6",
    "&dateFrom=2030-01-01",
    `&assignedToUserId=${me.user.id},unassigned`,
    "&rep=Rita%20Rep",
  ];
  for (const client of [as.owner, as.viewer, as.rep, as.otherOwner]) {
    for (const filter of filters) {
      const query = `?search=${name}${filter}`;
      const list = await client("GET", `/api/prospects${query}&pageSize=500`);
      const { items } = bodyOf(list, 200, z.object({ items: z.array(Identified) }));
      const ids = (await exported(query, client)).map(({ id }) => Number(id));
      expect(ids, `${client.email} ${query}`).toEqual(items.map(({ id }) => id));
    }
  }
  expect(await exported(`?search=${name}`, as.rep)).toHaveLength(4);
  expect(await exported(`?search=${name}`)).toHaveLength(12);
});

test("the export of a company without prospects contains only the header", async () => {
  expect(await exported("", (await newTeam()).owner)).toEqual([]);
});

test("a file may have all columns and a byte order mark, by request and by job", async () => {
  const city = uniqueName();
  const address = { address1: "1 Main St", city, state: "CO", zip: "80202" };
  const body = { name: "Bo", address, sourceId: "X-1", secondaryPhoneNumber: "555", customFieldData: { a: [1, "é"] } };
  const made = dataOf(await as.owner.POST("/api/prospects", { body }), 201);
  const head = [...exportColumns, "sourceId", "secondaryPhoneNumber", "updatedAt", "customFieldData"].join(",");
  const last = `,X-1,555,${made.updatedAt},"{""a"":[1,""é""]}"\r\n`;
  const streamed = await as.owner("GET", `/api/prospects/export?city=${city}&columns=all&bom=true`);
  const wanted = { city, columns: "all", bom: true } as const;
  const { id } = dataOf(await as.owner.POST("/api/prospects/exports", { body: wanted }), 201);
  const { file } = await endedExport(as.owner, id);
  // The test does not call `text()`, which would remove the byte order mark.
  const stored = Buffer.from(await (await fetch(present(file).url)).arrayBuffer()).toString();
  for (const text of [streamed.text, stored]) {
    expect(text.startsWith(`\uFEFF${head}\r\n${made.id},`)).toBe(true);
    expect(text.endsWith(last)).toBe(true);
  }
  for (const wrong of ["columns=some", "bom=yes", "bbox=1,2,3"]) {
    problemOf(await as.owner("GET", `/api/prospects/export?${wrong}`), 400, "validation_failed");
  }
});
