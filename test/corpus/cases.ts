/** The cases of the corpus: CSV files, queries and polygons that the service accepts. Each case has a name that stays the same. */
import { spreadsheetFiles } from "../harness/spreadsheet-files.ts";

export interface FileCase {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly query?: string;
}

const utf8 = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(text));
const latin = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(text, "latin1"));

const full = "name,phone,email,lat,lng,address1,address2,city,state,zip,status,assignedTo,tags,notes";
const row = (cells: Partial<Record<string, string>>): string => {
  const sample = { name: "Ann Ray", phone: "+1 303 555 0101", email: "ann@example.com", lat: "39.7", lng: "-104.9" };
  const all: Partial<Record<string, string>> = { ...sample, ...cells };
  return full
    .split(",")
    .map((column) => `"${(all[column] ?? "").replaceAll('"', '""')}"`)
    .join(",");
};

/** Cells that the import accepts or refuses, one row each. */
const cells: Partial<Record<string, string>>[] = [
  { name: "" },
  { name: "'=SUM(A1)" },
  { name: "=SUM(A1)" },
  { name: "'-1" },
  { name: "''+x" },
  { name: "  Ann  Ray  " },
  { name: "Zoë O’Neill – 5 €" },
  { name: "日本 太郎 🏠" },
  { name: "line one\nline two" },
  { name: 'a "quoted" name' },
  { name: "x".repeat(255) },
  { name: "x".repeat(256) },
  { phone: "'+1 303" },
  { phone: "(303) 555-0101 ext 5" },
  { phone: "3035550101" },
  { phone: "9".repeat(51) },
  { email: "bad" },
  { email: "a.b+c@sub.example.co.uk" },
  { email: "a@b" },
  { email: " ann@example.com " },
  { lat: "", lng: "" },
  { lat: "39,7", lng: "-104,9" },
  { lat: "91" },
  { lng: "181" },
  { lat: "1e1" },
  { lat: "abc" },
  { lat: "-0" },
  { lat: "39.7", lng: "" },
  { lat: "", lng: "", address1: "1 Main St", city: "Denver", state: "CO", zip: "80202" },
  { lat: "", lng: "", address1: "1 Main St", city: "Denver", state: "CO", zip: "" },
  { address1: "1 Main St", address2: "Apt 4", city: "Denver", state: "CO", zip: "02108" },
  { address1: "1 Main St" },
  { status: "Interested" },
  { status: " interested " },
  { status: "Intrested" },
  { assignedTo: "nobody@example.com" },
  { assignedTo: "Nobody At All" },
  { tags: "Hot;cold; hot" },
  { tags: ";;" },
  { tags: "x".repeat(101) },
  { notes: "a note" },
  { notes: "'@mention" },
  { notes: "x".repeat(10_001) },
  { notes: "first\r\nsecond" },
];

/** Files with another form than `full` and UTF-8. */
const forms: FileCase[] = [
  { name: "header only", bytes: utf8(`${full}\n`) },
  { name: "header without line end", bytes: utf8(full) },
  { name: "mark and CRLF", bytes: utf8(`\uFEFF${full}\r\n${row({})}\r\n`) },
  { name: "CR only in a quoted cell", bytes: utf8(`${full}\n${row({ notes: "a\rb" })}\n`) },
  { name: "blank lines", bytes: utf8(`${full}\n\n${row({})}\n\n\n${row({ name: "Bob" })}\n\n`) },
  { name: "semicolons", bytes: utf8("name;lat;lng\nAnn;39.7;-104.9\n") },
  { name: "semicolons and decimal commas", bytes: utf8("name;lat;lng\nAnn;39,7;-104,9\n") },
  { name: "tabs", bytes: utf8("name\tlat\tlng\nAnn\t39.7\t-104.9\n") },
  { name: "sep=;", bytes: utf8("sep=;\nname;lat;lng\nAnn;39,7;-104,9\n") },
  { name: "headers in capitals and blanks", bytes: utf8(" NAME , Lat,LNG \nAnn,39.7,-104.9\n") },
  { name: "unknown columns", bytes: utf8("name,lat,lng,colour,shoe size\nAnn,39.7,-104.9,blue,9\n") },
  {
    name: "export header",
    bytes: utf8(`id,${full},assignedToEmail,createdBy,source,createdAt\n1,${row({})},,x,web,2026-01-01\n`),
  },
  { name: "short and long rows", bytes: utf8("name,lat,lng\nAnn,39.7\nBob,39.7,-104.9,more\nCat,39.7,-104.9\n") },
  { name: "windows-1252", bytes: latin("name,lat,lng\nZo\u00eb,39.7,-104.9\n") },
  { name: "utf-16le", bytes: Uint8Array.from(Buffer.from("\uFEFFname,lat,lng\nZoë,39.7,-104.9\n", "utf16le")) },
  { name: "quoted header", bytes: utf8('"name","lat","lng"\n"Ann","39.7","-104.9"\n') },
  {
    name: "match by e-mail, update",
    query: "?matchBy=emailAddress&onMatch=update",
    bytes: utf8(`${full}\n${row({ name: "Ann Two" })}\n`),
  },
  {
    name: "match by e-mail, skip",
    query: "?matchBy=emailAddress&onMatch=skip",
    bytes: utf8(`${full}\n${row({ name: "Ann Three" })}\n`),
  },
  { name: "dry run", query: "?dryRun=true", bytes: utf8(`${full}\n${row({})}\n`) },
  {
    name: "several rows, some faults",
    bytes: utf8(`${full}\n${row({ status: "None" })}\n${row({})}\n${row({ email: "x" })}\n`),
  },
];

export const files: FileCase[] = [
  ...cells.map((cell, i) => ({ name: `cell ${i}`, bytes: utf8(`${full}\n${row(cell)}\n`) })),
  ...forms,
  ...spreadsheetFiles.map(({ saved, bytes }) => ({
    name: saved,
    bytes: bytes([
      ["Name", "lat", "lng", "notes"],
      ["Zoë", 39.5, -105.25, 'a "b"; c'],
    ]),
  })),
];

const cities = ["Denver", "Aurora", "São Paulo", "Golden"];
const statuses = ["New", "Not Home", "Sold", ""];
const names = ["Ann Ray", "Bob O'Neill", "Zoë Müller", "van der Berg", "李雷", "Ann-Marie Fox"];
const from = (values: readonly string[], i: number): string => values[i % values.length] ?? "";

/** The prospects that the queries find, as a CSV file. */
export const sample = utf8(
  `${full}\n${Array.from({ length: 60 }, (_, i) =>
    row({
      name: `${from(names, i)} ${i}`,
      phone: `+1 (303) 555-${String(1000 + i * 37)}`,
      email: `p${i}@${i % 2 ? "example.com" : "example.org"}`,
      lat: i % 10 === 9 ? "" : String(39 + (i % 7) * 0.1),
      lng: i % 10 === 9 ? "" : String(-105 + (i % 11) * 0.1),
      address1: `${i} Main St`,
      city: from(cities, i),
      state: "CO",
      zip: String(80_200 + i),
      status: from(statuses, i),
      tags: i % 3 === 0 ? "Hot;Roof" : "",
      notes: i % 5 === 0 ? `knocked twice, dog #${i}` : "",
    }),
  ).join("\n")}\n`,
);

const searches = [
  ..."ann|Ann-Marie|zoë|ZOË|müller|o'neill|neill|李雷|李|van der|der berg|80201|555|5551037|303-555|(303) 555-1037|+1 303".split(
    "|",
  ),
  ..."p1@|example.org|main|main denver|7 Main St|dog|dog #5|twice ann|%|_|*|a b c|x|ray 6|ann  ray".split("|"),
];
const query = (pairs: Record<string, string>): string => `?${new URLSearchParams(pairs)}`;

export const queries: string[] = [
  "",
  ...searches.map((search) => query({ search })),
  ...["1,2", "1,20", "2,20", "3,25", "99,50"].map((pair) => {
    const [page = "", pageSize = ""] = pair.split(",");
    return query({ page, pageSize });
  }),
  ...["New", "new, SOLD", "Not Home", " not home ,", "None", ","].map((status) => query({ status })),
  ...["Denver", "denver,Golden", "são paulo", "Paris"].map((city) => query({ city })),
  ...["Hot", "hot,roof", "cold"].map((tagId) => query({ tagId })),
  ...["unassigned", "1", "1,unassigned"].map((assignedToUserId) => query({ assignedToUserId })),
  ...["Olga Owner", "Nobody"].map((rep) => query({ rep })),
  ...["-105,39,-104.5,39.3", "-180,-90,180,90", "170,39,-104.8,40", "0,0,1,1", "-104.9,39.1,-104.9,39.1"].map((bbox) =>
    query({ bbox }),
  ),
  ...["2020-01-01", "2999-01-01"].map((dateFrom) => query({ dateFrom })),
  ...["2020-01-01", "2999-01-01T00:00:00Z"].map((dateTo) => query({ dateTo })),
  query({ near: "39.2,-104.8", maxMeters: "20000" }),
  query({ near: "39.2,-104.8" }),
  query({ updatedSince: "2020-01-01T00:00:00Z" }),
  query({ status: "New,Sold", city: "Denver", search: "ann" }),
  query({ bbox: "-105,39,-104,40", tagId: "Hot", search: "main" }),
  query({ status: "bogus", page: "2" }),
  query({ search: "" }),
  query({ city: "" }),
];

export interface PolygonCase {
  readonly name: string;
  readonly polygon: readonly (readonly [lng: number, lat: number])[];
}

const around = (points: number, turns: number): [number, number][] =>
  Array.from({ length: points }, (_, i) => {
    const angle = (2 * Math.PI * turns * i) / points;
    return [Number((-104.5 + 0.4 * Math.cos(angle)).toFixed(6)), Number((39.3 + 0.3 * Math.sin(angle)).toFixed(6))];
  });
const box = (west: number, south: number, east: number, north: number): [number, number][] => [
  [west, south],
  [east, south],
  [east, north],
  [west, north],
];
const zigzag = (points: number): [number, number][] =>
  Array.from({ length: points }, (_, i) => [-105 + i / points, i % 2 === 0 ? 39 : 39.6]);

export const polygons: PolygonCase[] = [
  ...Array.from({ length: 28 }, (_, i) => ({
    name: `box ${i}`,
    polygon: box(-105 + (i % 7) * 0.1, 39 + Math.floor(i / 7) * 0.15, -104.6 + i * 0.01, 39.65 - i * 0.01),
  })),
  ...[3, 4, 5, 6, 7, 12, 50, 500].map((points) => ({ name: `circle of ${points}`, polygon: around(points, 1) })),
  ...[5, 7, 9, 50].map((points) => ({ name: `star of ${points}`, polygon: around(points, 2) })),
  ...[10, 99, 500].map((points) => ({ name: `zigzag of ${points}`, polygon: zigzag(points) })),
  { name: "closed box", polygon: [...box(-105, 39, -104.5, 39.3), [-105, 39]] },
  { name: "open box", polygon: box(-105, 39, -104.5, 39.3) },
  { name: "clockwise box", polygon: box(-105, 39, -104.5, 39.3).reverse() },
  { name: "box on the points", polygon: box(-104.9, 39.1, -104.6, 39.4) },
  {
    name: "line",
    polygon: [
      [-105, 39],
      [-104.5, 39.3],
      [-104, 39.6],
    ],
  },
  {
    name: "one point three times",
    polygon: [
      [-104.9, 39.1],
      [-104.9, 39.1],
      [-104.9, 39.1],
    ],
  },
  {
    name: "bow tie",
    polygon: [
      [-105, 39],
      [-104, 39.6],
      [-104, 39],
      [-105, 39.6],
    ],
  },
  { name: "ring walked twice", polygon: [...box(-105, 39, -104, 40), ...box(-105, 39, -104, 40)] },
  { name: "wide box", polygon: box(-179, -80, -1, 80) },
  { name: "far away", polygon: box(10, 10, 11, 11) },
  {
    name: "spike",
    polygon: [
      [-105, 39],
      [-104, 39],
      [-104.5, 39],
      [-104.5, 39.6],
    ],
  },
];
