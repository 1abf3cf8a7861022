/** Tests which columns of a file an import reads: exact headers, synonyms, repeated headers and headers that a mapping names. */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { columnsOf } from "#shared/jobs/import/check.ts";
import type { Draft } from "#shared/prospects/csv/draft.ts";
import { encodingOf } from "#shared/prospects/csv/encoding.ts";
import { BadFile, importColumns } from "#shared/prospects/csv/format.ts";
import {
  type Mapping,
  MappingText,
  mobileHeaders,
  readHeader,
  synonymOf,
  synonyms,
} from "#shared/prospects/csv/header.ts";
import { csvText } from "#shared/prospects/csv/write.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { sized } from "../harness/tier.ts";
import { readFile } from "../jobs/read-file.ts";

const names: Dictionary = { version: 1, statuses: new Map(), tags: new Map(), users: new Map() };

const read = (rows: readonly (readonly string[])[], mapping?: Mapping) =>
  readFile(Buffer.from(csvText(rows)), names, mapping);

async function only(header: string, cells: string, mapping?: Mapping) {
  const rows = [`${header},lat,lng`, `${cells},1,2`].map((row) => row.split(","));
  const { drafts, faults, ignoredColumns, warnings } = await read(rows, mapping);
  const [draft] = drafts;
  return { ...draft, faults, ignoredColumns, warnings };
}

const none = { ignoredColumns: [], faults: [], warnings: 0 };

describe("a header", () => {
  test.each<[header: string, cells: string, read: Partial<Draft>, ignored: string[]]>([
    [
      "Full Name,Phone Number,E-mail Address",
      "Bo,555,bo@x.test",
      { name: "Bo", phoneNumber: "555", emailAddress: "bo@x.test" },
      [],
    ],
    ["full_name,PHONENUMBER,External ID", "Bo,555,X-1", { name: "Bo", phoneNumber: "555", sourceId: "X-1" }, []],
    ["Owner,name", "Ann,Bo", { name: "Bo" }, ["Owner"]],
    ["name,Full Name", ",Bo", { name: null }, ["Full Name"]],
    ["Full Name,Customer Name", ",Bo", { name: "Bo" }, []],
    ["Full Name,Customer Name", "Cy,Bo", { name: "Cy" }, ["Customer Name"]],
    ["First Name,Last Name", " Bo,Li ", { name: "Bo Li" }, []],
    ["First Name,Last Name", "Bo,", { name: "Bo" }, []],
    ["First Name,name,Last Name", "Bo,,Li", { name: null }, ["First Name", "Last Name"]],
    ["First Name,Full Name,Last Name", "Bo,Cy,Li", { name: "Cy" }, ["First Name", "Last Name"]],
    ["phone,Mobile", "1,2", { phoneNumber: "1", secondaryPhoneNumber: "2" }, []],
    ["Cell,Home Phone", "1,2", { phoneNumber: "2", secondaryPhoneNumber: "1" }, []],
    ["Mobile,secondaryPhoneNumber", "1,2", { phoneNumber: "1", secondaryPhoneNumber: "2" }, []],
    ["phone,Mobile,secondaryPhoneNumber", "1,2,3", { phoneNumber: "1", secondaryPhoneNumber: "3" }, ["Mobile"]],
    ["Mobile", "1", { phoneNumber: "1", secondaryPhoneNumber: null }, []],
    ["name,notes,NOTES ", "Bo,a,b", { note: "a" }, ["NOTES (2)"]],
    ["source", "", { source: null }, []],
  ])("%s of the cells %s is read as %j", async (header, cells, draft, ignoredColumns) => {
    expect(await only(header, cells)).toMatchObject({ ...none, ...draft, ignoredColumns });
  });

  test("that is a synonym of `source` leaves the default source if its cell is empty", async () => {
    expect(await only("Lead Source", "")).not.toHaveProperty("source");
    expect(await only("Lead Source", "web")).toMatchObject({ source: "web" });
  });

  test("in the mapping has priority over an exact header, and a second header `City` gets the name `City (2)`", async () => {
    const file = ["address1,City,City,state,zip,City (2)", "1 Main,Denver,Aurora,CO,80202,Salida"] as const;
    const cityOf = async (mapping?: Mapping) => (await only(...file, mapping)).address?.city;
    const shown = { address: { city: "Denver" }, ignoredColumns: ["City (3)", "City (2)"] };
    expect(await only(...file)).toMatchObject(shown);
    expect(await cityOf({ "city (3)": "city" })).toBe("Aurora");
    expect(await cityOf({ "City (2)": "city" })).toBe("Salida");
    expect(await cityOf({ City: null })).toBe("Aurora");
    await expect(cityOf({ City: "city", "City (2)": "city" })).rejects.toThrow(
      'two headers to the column city: "City" and "City (2)"',
    );
    const nick = await only("Full Name,Nick", "Bo,Cy", { Nick: "name" });
    expect(nick).toMatchObject({ name: "Cy", ignoredColumns: ["Full Name"] });
  });

  test("is a synonym of one column only, and the document names it", () => {
    const document = readFileSync("docs/csv.md", "utf8");
    const all = [...synonyms, ["mobile", mobileHeaders] as const];
    for (const [field, headers] of all) {
      for (const header of headers) {
        expect(synonymOf(header), header).toBe(field);
        expect(document).toContain(`\`${header}\``);
      }
    }
  });
});

describe("a value", () => {
  test('such as ="02108" is read as its text in every column, and a guarded one as it is', async () => {
    const address = ['="1 ""A"" St"', "Boston", "MA", '="02108"'];
    const rows = [
      ["address1", "city", "state", "zip", "name"],
      [...address, '=""'],
      ["1", "2", "3", "4", '="a"&"b"'],
      ["1", "2", "3", "4", `'="x"`],
    ];
    const text = rows.map((cells) => cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(",")).join("\n");
    const { drafts } = await readFile(Buffer.from(text), names);
    expect(drafts.map(({ name }) => name)).toEqual([null, '="a"&"b"', '="x"']);
    expect(drafts[0]?.address).toMatchObject({ address1: '1 "A" St', zip: "02108" });
  });

  test.each(["3.03556E+09", "3,03556e+9", " 1E10 ", "1E5"])(
    "%j is no phone, so its row is an error, or the cell is left empty below a synonym",
    async (phone) => {
      const rows = (header: string) => [
        [header, "lat", "lng"],
        [phone, "1", "2"],
      ];
      expect((await read(rows("phone"))).faults).toMatchObject([
        { message: expect.stringMatching(/^phone: must have all its digits and no exponent \(.* as text/) },
      ]);
      const left = await read(rows("Phone Number"));
      expect(left).toMatchObject({ faults: [], warnings: 1, drafts: [{ phoneNumber: null }] });
    },
  );

  test("of custom fields is a JSON object, without integers that a number cannot hold", async () => {
    const rows = (cell: string) => [
      ["lat", "lng", "customFieldData"],
      ["1", "2", cell],
    ];
    expect((await read(rows('{"a":[1,"é"]}'))).drafts).toMatchObject([{ customFieldData: { a: [1, "é"] } }]);
    const deep = `{"a":${"[".repeat(200)}${"]".repeat(200)}}`;
    const fault = { message: expect.stringMatching(/^customFieldData: /) };
    for (const cell of ["x", "[1]", "7", '{"__proto__":1}', '{"a":9007199254740993}', deep]) {
      expect((await read(rows(cell))).faults, cell).toMatchObject([fault]);
    }
    const message =
      "customFieldData: has a value that is an integer beyond 2^53 - 1: send it as a text ('/a/0/b: -9007199254740993')";
    expect((await read(rows('{"a":[{"b":-9007199254740993}]}'))).faults).toMatchObject([{ message }]);
    const list = { message: "customFieldData: must be a JSON object, but is '['a']'" };
    expect((await read(rows('["a"]'))).faults).toMatchObject([list]);
  });

  test.each([
    ["lat,lng,Email Address,name", `1,2,x,${"n".repeat(256)}`, "name"],
    ["Address,Town,Province,Zip Code,name", `1 Main,Denver,CO,80202,${"n".repeat(256)}`, "name"],
    ["lat,lng,Lead Status,email", "1,2,x,y", "email"],
    ["Latitude,Longitude,Email Address", "x,2,y", "lat; must have address1, city, state and zip, or both lat and lng"],
  ])("that is invalid below a synonym in %s is a fault only if the row needs it for its place", async (...row) => {
    const [header, cells, expected] = row;
    const { faults } = await read([header.split(","), cells.split(",")]);
    const columns = faults.flatMap(({ message }) => message.split("; ").map((one) => one.split(": ")[0]));
    expect(columns.join("; ")).toBe(expected);
  });

  test.each([
    ["name", "Bo", ", but the file has none of these columns"],
    ["name,lng", "Bo,1", ", but the file has no column lat"],
    ["address1,city,zip", "1 Main St,,1", ", but city is empty, and the file has no column state"],
    ["address1,city,state,zip", "1 Main St,,,1", ", but city, state are empty"],
  ])("below the header %s, in a row without a place, has a fault that names the missing columns", async (...row) => {
    const [header, cells, missing] = row;
    const message = `must have address1, city, state and zip, or both lat and lng${missing}`;
    expect((await read([header.split(","), cells.split(",")])).faults).toEqual([{ row: 2, message }]);
  });

  test("is not read from a binary file, which a dry run refuses too", async () => {
    const text = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n";
    const compressed = Buffer.concat([Buffer.from(`${text}stream\n`), Buffer.from([0x78, 0x9c, 0, 1, 2, 0xff])]);
    const icon = Buffer.from([0, 0, 1, 0, 1, 0, 16, 16]);
    for (const bytes of [Buffer.from(text), Buffer.from("Nom\nx\u0001\n"), compressed, icon]) {
      await expect(columnsOf([bytes], await encodingOf([bytes]))).rejects.toBeInstanceOf(BadFile);
    }
    expect(await columnsOf([Buffer.from("Nom\nZoé\n")], "utf-8")).toEqual([{ header: "Nom", samples: ["Zoé"] }]);
  });
});

const filledIn = (record: object): object =>
  Object.fromEntries(
    Object.entries(record).flatMap(([name, value]) => {
      if (value === null || value === undefined) return [];
      return [[name, name === "address" ? filledIn(value) : value]];
    }),
  );

test("columns with synonyms do not change the cells of exact columns", { tags: "sized" }, async () => {
  const value = fc.oneof(
    fc.constantFrom("", " ", "x", "1", "91", "1e9", "bo@x.test", "CO", "x".repeat(300), "\u200B", '="1"', "a;b"),
    fc.string({ maxLength: 4 }),
  );
  const headers = [...synonyms.flatMap(([, own]) => own), ...mobileHeaders, "Owner"];
  const columns = importColumns.filter((column) => column !== "lat" && column !== "lng");
  const cells = fc.record({
    exact: fc.array(value, { minLength: columns.length, maxLength: columns.length }),
    others: fc.array(value, { minLength: headers.length, maxLength: headers.length }),
  });
  const file = fc.record({
    exact: fc.subarray(columns),
    others: fc.subarray(headers),
    rows: fc.array(cells, { minLength: 1, maxLength: 5 }),
    point: fc.constantFrom([], ["lat", "lng"]),
  });
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(file, async ({ exact, others, rows, point }) => {
      const all = rows.map((row) => [
        ...row.exact.slice(0, exact.length),
        ...point.map(() => "1"),
        ...row.others.slice(0, others.length),
      ]);
      const own = [...exact, ...point];
      const without = await read([[...own, ...others.map((_, i) => `Unknown ${i}`)], ...all]).catch(() => undefined);
      // `read` refuses a file that has no known header, or no value in an essential column. Such a file proves nothing here.
      if (without === undefined) return;
      const found = await read([[...own, ...others], ...all]);
      const faulty = new Set(without.faults.map(({ row }) => row));
      expect(found.faults.filter(({ row }) => !faulty.has(row))).toEqual([]);
      if (found.faults.length !== faulty.size) return;
      for (const [i, draft] of without.drafts.entries()) {
        expect(found.drafts[i]).toMatchObject(filledIn({ ...draft, warnings: undefined }));
        compared++;
      }
    }),
    { numRuns: sized({ short: 50, wide: 1000 }) },
  );
  expect(compared).toBeGreaterThan(0);
});

test("the error about a missing header shows the header as the mapping spells it", () => {
  const mapping = { "Fulll Name": "notes" } as const;
  expect(() => readHeader(["name", "Full name"], { mapping })).toThrow('the header "Fulll Name", which');
});

test("a mapping of the header __proto__ is refused", () => {
  const { error } = z.safeParse(MappingText, '{"Name":"name","__proto__":"notes"}');
  expect(error?.issues).toMatchObject([{ message: "must not name the header __proto__" }]);
});

test("a mapping with the same header in different case is refused, and the error has both headers", () => {
  const { error } = z.safeParse(MappingText, '{"Full Name":"name","x":null," FULL name":"notes"}');
  expect(error?.issues).toMatchObject([
    { message: 'must not have both "Full Name" and " FULL name", because headers are compared without case' },
  ]);
});
