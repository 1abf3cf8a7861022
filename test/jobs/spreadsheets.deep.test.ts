/** Tests that both imports (in one request, and by upload) read files as spreadsheet programs save them. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { at, send } from "../harness/client.ts";
import { bodyOf, dataOf, present, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { type File, postFile, uploadFile } from "./files-over-http.ts";

const as = await newTeam();

const Result = z.object({
  imported: z.number(),
  skipped: z.number(),
  encoding: z.nullable(z.string()),
  ignoredColumns: z.array(z.string()),
  errors: z.array(z.object({ row: z.number(), message: z.string() })),
});
type Result = z.infer<typeof Result>;

const post = (file: File, query = "") => postFile(as.owner, file, query);
const inRequest = async (file: File): Promise<Result> => bodyOf(await post(file), 200, Result);
const byUpload = (file: File, body: { dryRun?: boolean } = {}) => uploadFile(as.owner, file, body);

/** How a spreadsheet program saves a file: by default in UTF-8 without a byte order mark, and with "\r\n" at the end of each line. */
interface Spreadsheet {
  /** The name of the program and of its menu command that saves a file in this form. */
  readonly saved: string;
  readonly delimiter: "," | ";" | "\t";
  readonly encoding?: "utf-16le" | "windows-1252";
  readonly first?: string;
  readonly lineEnd?: "\n";
  readonly leavesLastLineOpen?: boolean;
  readonly quotesTexts?: boolean;
  readonly hasDecimalComma?: boolean;
}

const [MARK, WINDOWS] = ["\uFEFF", "windows-1252"] as const;
const german = { delimiter: ";", hasDecimalComma: true } as const;
const libreOffice = { delimiter: ",", lineEnd: "\n" } as const;
const spreadsheets: readonly Spreadsheet[] = [
  { saved: "Excel in English: Save As, CSV (Comma delimited)", delimiter: ",", encoding: WINDOWS },
  { saved: "Excel in German: Speichern unter, CSV (Trennzeichen-getrennt)", ...german, encoding: WINDOWS },
  { saved: "Excel in English: Save As, CSV UTF-8", delimiter: ",", first: MARK },
  { saved: "Excel in German: Speichern unter, CSV UTF-8", ...german, first: MARK },
  { saved: "Excel: Save As, Unicode Text", delimiter: "\t", encoding: "utf-16le", first: MARK },
  { saved: "a first line sep=; that makes Excel open the file in columns", delimiter: ";", first: "sep=;\r\n" },
  { saved: "LibreOffice on Linux: Save As, Text CSV, with its default settings", ...libreOffice },
  { saved: "LibreOffice on Linux: Save As, Text CSV, with quoted text cells", ...libreOffice, quotesTexts: true },
  { saved: "Google Sheets: Download, Comma-separated values", delimiter: ",", leavesLastLineOpen: true },
];

/** The bytes in Windows-1252 of the test's characters that are not in Latin-1. */
const inWindows1252: Partial<Record<string, string>> = { "€": "\x80", "’": "\x92", "–": "\x96" };

function bytesOf(style: Spreadsheet, rows: readonly (readonly (string | number)[])[]): Uint8Array<ArrayBuffer> {
  const { delimiter, encoding, first = "", lineEnd = "\r\n" } = style;
  const cellOf = (cell: string | number): string => {
    if (typeof cell === "number") return String(cell).replace(".", style.hasDecimalComma === true ? "," : ".");
    const needsQuotes = cell.includes(delimiter) || /["\r\n]/.test(cell) || (style.quotesTexts === true && cell !== "");
    return needsQuotes ? `"${cell.replaceAll('"', '""')}"` : cell;
  };
  const lines = rows.map((cells) => cells.map(cellOf).join(delimiter)).join(lineEnd);
  const text = first + lines + (style.leavesLastLineOpen === true ? "" : lineEnd);
  if (encoding !== WINDOWS) return Uint8Array.from(Buffer.from(text, encoding === undefined ? "utf8" : "utf16le"));
  const letters = text.replaceAll(/[€’–]/g, (letter) => inWindows1252[letter] ?? "?");
  return Uint8Array.from(Buffer.from(letters, "latin1"));
}

const header = ["Name", "Phone", "lat", "lng", "address1", "city", "state", "zip", "notes", "Favourite colour"];
const note = 'first "line"\nsecond; with, everything';
const address = ["1 Main St", "Boston", "MA", "02108"];
const rowsOf = (name: string) => [
  header,
  [`${name} Zoë O’Neill – 5 €`, "+1 303 555 0142", 39.7392, -104.9903, ...address, note, "blue"],
];

async function expectImported(name: string, result: Result, encoding = "utf-8"): Promise<void> {
  const summary = { imported: 1, skipped: 0, encoding, ignoredColumns: ["Favourite colour"], errors: [] };
  expect(result).toMatchObject(summary);
  const { items } = dataOf(await as.owner.GET("/api/prospects", { params: { query: { search: name } } }));
  expect(items).toMatchObject([
    { name: `${name} Zoë O’Neill – 5 €`, lat: 39.7392, lng: -104.9903, address: { zip: "02108" } },
  ]);
  const detail = dataOf(await as.owner.GET("/api/prospects/{id}", at(present(items[0]).id)));
  expect(detail.notes).toMatchObject([{ body: note }]);
}

test.each(spreadsheets)("$saved: imported within the request", async (style) => {
  const name = uniqueName();
  await expectImported(name, await inRequest(bytesOf(style, rowsOf(name))), style.encoding);
});

// The code that reads a file is the same for both imports, but an upload arrives in pieces, which may divide a character of UTF-16.
const inUtf16 = spreadsheets.filter(({ encoding }) => encoding === "utf-16le");
test.each(inUtf16)("$saved: imported by upload", async (style) => {
  const name = uniqueName();
  await expectImported(name, await byUpload(bytesOf(style, rowsOf(name))), style.encoding);
});

test("rows of the template without their last empty cells are imported, and rows of separators alone are blank", async () => {
  const name = uniqueName();
  const template = (await as.owner.send("GET", "/api/prospects/import/template.csv")).text.trimEnd();
  const file = [template, `${name} 1,,,1,2`, ",,,,,", `${name} 2,,,1,2,,,,,,,,,,,,,,,`, ",".repeat(99)].join("\r\n");
  const result = { imported: 2, skipped: 0, errors: [], ignoredColumns: [] };
  expect(bodyOf(await post(file, "?dryRun=true"), 200, Result)).toMatchObject(result);
  expect(await inRequest(file)).toMatchObject(result);
  expect(await byUpload(file.replaceAll(",", ";"))).toMatchObject({ ...result, processed: 2, state: "completed" });
  // These rows have no source id: it is empty, or the row ends before its column. Each row therefore creates a prospect.
  expect(bodyOf(await post(file, "?matchBy=sourceId&onMatch=update"), 200, Result)).toMatchObject(result);
  const { total } = dataOf(await as.owner.GET("/api/prospects", { params: { query: { search: name } } }));
  expect(total).toBe(6);
});

test("a file in which no row has a name, phone, e-mail, address or coordinates is refused with the known columns", async () => {
  for (const file of ["status,tags,Nickname\nNew,a,Bo\nNew,b,Cy\n", "name,Full name\n,Bo\n  ,Cy\n"]) {
    for (const query of ["", "?dryRun=true"]) {
      const answer = await post(file, query);
      problemOf(answer, 400, "validation_failed");
      expect(answer.text).toContain("name, phone, email, lat, lng, address1");
    }
    const failure = expect.stringContaining("name, phone, email");
    expect(await byUpload(file)).toMatchObject({ state: "failed", failure });
  }
  expect(await inRequest("status,tags\n")).toMatchObject({ imported: 0, skipped: 0 });
});

test("columns that are not read are named, also filled columns without a header and columns that the mapping ignores", async () => {
  const mapping = encodeURIComponent(JSON.stringify({ city: null }));
  const file = "id,name,lat,lng,city,Colour,,\n7,Bo,1,2,Denver,blue,x,\n";
  const result = bodyOf(await post(file, `?dryRun=true&mapping=${mapping}`), 200, Result);
  expect(result).toMatchObject({ imported: 1, ignoredColumns: ["id", "city", "Colour", ""] });
  expect(await inRequest("name,lat,lng,,\n")).toMatchObject({ ignoredColumns: [] });
});

test("a dry run of a file without a known header answers its columns, and a broken byte of UTF-8 fails a job with its place", async () => {
  const file = `Nom,Nom,,Ville\n${"Zoé,x,y,Paris\n".repeat(4)}Bo,,,\n`;
  const cells = { Nom: "Zoé", "Nom (2)": "x", Ville: "Paris" };
  const columns = Object.entries(cells).map(([header, cell]) => ({ header, samples: [cell, cell, cell] }));
  const counts = { imported: 0, updated: 0, skipped: 0, warnings: 0, errors: [], dryRun: true };
  const result = { ...counts, columns, ignoredColumns: ["Nom", "Nom (2)", "Ville"] };
  for (const match of ["", "&matchBy=sourceId&onMatch=update"]) {
    const answer = await post(file, `?dryRun=true${match}`);
    expect(bodyOf(answer, 200, z.record(z.string(), z.unknown()))).toMatchObject(result);
  }
  problemOf(await post(file), 400, "validation_failed");
  expect(await byUpload(file, { dryRun: true })).toMatchObject({ ...result, state: "completed" });
  expect(await byUpload(file)).toMatchObject({ state: "failed" });
  const broken = Uint8Array.from(Buffer.from("\xef\xbb\xbfname,lat,lng\nBo,1,2\nJos\xe9,1,2\n", "latin1"));
  for (const dryRun of [true, false]) {
    const failure = 'Row 3 has a byte in the column "name" that is not valid in UTF-8. Save the file as CSV UTF-8.';
    expect(await byUpload(broken, { dryRun })).toMatchObject({ state: "failed", failure, imported: 0 });
  }
});

test("values below synonyms are read or left empty and counted by both imports", async () => {
  const [one, two] = [uniqueName(), uniqueName()];
  const fileOf = (name: string) =>
    `Full Name,Mobile,Latitude,Longitude,Lead Status,Sales Rep,External ID\n${name},555,1,2,Nope,nobody,${name}\n`;
  const result = { imported: 1, skipped: 0, warnings: 2, ignoredColumns: [], errors: [] };
  const answer = bodyOf(await post(fileOf(one)), 200, z.record(z.string(), z.unknown()));
  expect(answer).toMatchObject(result);
  expect(dataOf(await as.owner.GET("/api/prospects/imports/{id}", at(Number(answer.id))))).toMatchObject(result);
  expect(await byUpload(fileOf(two))).toMatchObject(result);
  for (const name of [one, two]) {
    const { items } = dataOf(await as.owner.GET("/api/prospects", { params: { query: { search: name } } }));
    expect(items).toMatchObject([{ name, phoneNumber: "555", lat: 1, lng: 2, currentStatus: null, sourceId: name }]);
  }
});

test("the template has the columns of an import and no row, so its import creates nothing", async () => {
  const answer = await as.rep.send("GET", "/api/prospects/import/template.csv");
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  expect(answer.headers.get("content-disposition")).toBe('attachment; filename="prospects-template.csv"');
  const columns =
    "name,phone,email,lat,lng,address1,address2,city,state,zip,status,assignedTo,assignedToEmail,tags,notes,source,sourceId,secondaryPhoneNumber,customFieldData";
  expect(answer.text).toBe(`${columns}\r\n`);
  expect(await inRequest(answer.text)).toMatchObject({ imported: 0, skipped: 0, ignoredColumns: [], errors: [] });
  problemOf(await send("GET", "/api/prospects/import/template.csv"), 401, "unauthenticated");
});
