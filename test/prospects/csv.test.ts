/** Tests the encoding of CSV files, that texts in them read back unchanged and are no formulas, and which files are refused. */
import { parse } from "csv-parse/sync";
import fc from "fast-check";
import Papa from "papaparse";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { isBlank } from "#shared/blank.ts";
import { draftOf } from "#shared/prospects/csv/draft.ts";
import { decoded, encodingOf } from "#shared/prospects/csv/encoding.ts";
import { BadFile, delimiterOf, exportColumns, guarded, unguarded } from "#shared/prospects/csv/format.ts";
import { type Header, readHeader } from "#shared/prospects/csv/header.ts";
import { type CsvRow, openCsv } from "#shared/prospects/csv/read.ts";
import { csvText, decimal } from "#shared/prospects/csv/write.ts";
import { sized } from "../harness/tier.ts";

async function rowsOf(bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<CsvRow[]> {
  // Finding the encoding would read the bytes once more, but a generator can be read only once. All generators of this file yield UTF-8.
  const encoding = Array.isArray(bytes) ? await encodingOf(bytes) : "utf-8";
  return Array.fromAsync((await openCsv(decoded(bytes, encoding))).rows);
}

const read = async (text: string): Promise<string[]> =>
  (await rowsOf([Buffer.from(text)])).map(({ cells }) => cells.join(" | "));

/** Texts that often cause faults in CSV files, and random texts. */
const awkward = fc.oneof(
  fc.constantFrom(
    ...["", "=1+1", "+1 (303) 555-0142", "-104.99", "-1+1", "@SUM(A1)", "\t=x", "\r=x", "\n=x", "\u0000=x", "＝1"],
    ...["'＠x", "'", "'=x", "''=x", "'abc", '"', '""', '6" pipe', '"quoted"', "a,b", "a;b", "a\tb", "a\r\nb"],
    ...["a\rb", "a\nb", "\uFEFFname", "👩‍👩‍👧", "\u0000", " a "],
    "x".repeat(10_000),
  ),
  fc.string({ unit: fc.constantFrom(..."=+-@＝＋－＠'\t\r\n\",; ab0().é👍\uFEFF\u200B\u0000") }),
  fc.string({ unit: "grapheme" }),
);
const table = (width: number) => fc.array(fc.array(awkward, { minLength: width, maxLength: width }), { maxLength: 8 });

const head = ["id", "name", "notes"];

test("a written file reads back unchanged, wherever its bytes are cut", { tags: "sized" }, async () => {
  const whole = async (rows: string[][], cuts: number): Promise<void> => {
    const bytes = Buffer.from(csvText([head, ...rows]));
    const size = Math.ceil(bytes.length / cuts);
    const pieces = Array.from({ length: cuts }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
    const found = (await rowsOf(pieces)).slice(1).map(({ cells }) => cells.map(unguarded));
    expect(found).toEqual(rows.filter((cells) => cells.some((cell) => !isBlank(guarded(cell)))));
  };
  await fc.assert(fc.asyncProperty(table(3), fc.integer({ min: 1, max: 100 }), whole), {
    numRuns: sized({ short: 80, wide: 1_000 }),
  });
});

test("two other CSV parsers find no cell that begins like a formula, and plain numbers and phone numbers are unchanged", {
  tags: "sized",
}, () => {
  const holds = (rows: string[][]): void => {
    const text = csvText([head, ...rows]);
    const byPapa = Papa.parse<string[]>(text.replace(/\r\n$/, ""), { delimiter: ",", newline: "\r\n" }).data;
    const byCsvParse = parse(text, { record_delimiter: "\r\n" });
    expect(byPapa).toEqual(byCsvParse);
    for (const cell of byPapa.flat()) {
      if (/^[=+\-@\t\r\n\0\uFF1D\uFF0B\uFF0D\uFF20]/.test(cell)) expect(cell).toMatch(/^(?=.*\d)[\d +\-().]+$/);
    }
  };
  fc.assert(fc.property(table(3), holds), { numRuns: sized({ short: 150, wide: 1_000 }) });
  for (const plain of ["-104.99", "+1 (303) 555-0142", "0", "-5"]) expect(guarded(plain)).toBe(plain);
  expect(guarded("=1+1")).toBe("'=1+1");
  expect(unguarded("'tis")).toBe("'tis");
  for (const empty of ["-", "+", "- -", "+()", "--"]) expect(guarded(empty)).toBe(`'${empty}`);
});

test("numbers are written without an exponent and read back unchanged", { tags: "sized" }, () => {
  const degrees = fc.double({ min: -180, max: 180, noNaN: true }).filter((value) => Math.abs(value) >= 1e-9);
  fc.assert(
    fc.property(degrees, (value) => {
      expect(Number(decimal(value))).toBe(value);
      expect(decimal(value)).toMatch(/^-?\d+(\.\d+)?$/);
    }),
    { numRuns: sized({ short: 500, wide: 5_000 }) },
  );
  expect(decimal(-1.5e-7)).toBe("-0.00000015");
  expect(decimal(0)).toBe("0");
});

describe("reading", () => {
  const text = 'name,notes\r\nÄnne,"a\nb"\r\n\r\n  \r\nBo,c';
  const rows = [
    { row: 1, cells: ["name", "notes"] },
    { row: 2, cells: ["Änne", "a\nb"] },
    { row: 5, cells: ["Bo", "c"] },
  ];

  test.each([
    ["UTF-8", Buffer.from(text)],
    ["UTF-8 with a byte order mark", Buffer.from(`\uFEFF${text}`)],
    ["UTF-16, little end first", Buffer.from(`\uFEFF${text}`, "utf16le")],
    ["UTF-16, big end first", Buffer.from(`\uFEFF${text}`, "utf16le").swap16()],
    ["semicolons", Buffer.from(text.replaceAll(",", ";"))],
    ["tabs", Buffer.from(text.replaceAll(",", "\t"))],
    ["UTF-16 without a mark, little end first", Buffer.from(text, "utf16le")],
    ["UTF-16 without a mark, big end first", Buffer.from(text, "utf16le").swap16()],
    ["Windows-1252", Buffer.from(text, "latin1")],
    ["a line that names the delimiter", Buffer.from(`sep=,\r\n${text}`)],
    ["a quoted line that names the delimiter", Buffer.from(`\uFEFF"SEP=;"\n${text.replaceAll(",", ";")}`)],
    ["line feeds alone", Buffer.from(text.replaceAll("\r\n", "\n"))],
    ["mixed ends of lines", Buffer.from(text.replace("\r\n", "\n"))],
  ])("%s; blank lines count but are not rows", async (_, bytes) => {
    expect(await rowsOf([bytes])).toEqual(rows);
    expect(await rowsOf([...bytes].map((byte) => Buffer.of(byte)))).toEqual(rows);
  });

  test("a first line such as `sep=;` decides the delimiter, even if the header has more commas", async () => {
    expect(await read("sep=;\r\nname;a,b,c\r\nBo;x\r\n")).toEqual(["name | a,b,c", "Bo | x"]);
  });

  test.each([
    ["sep=|", '"|"'],
    ['"SEP=|"', '"|"'],
    ["sep=\\t", '"\\t"'],
    ["sep=tab", '"tab"'],
    ["sep=^^ ", '"^^"'],
    ["sep=", "no delimiter"],
    [`sep=${"x".repeat(1_000)}`, '"xxxxxxxxxx"'],
  ])("a first line %j is refused with the delimiter that it names and those that are allowed", async (line, named) => {
    const { message } = await read(`${line}\r\nname|city\r\nBo|Denver\r\n`).catch((error) => error);
    expect(message).toContain(`names ${named === "no delimiter" ? named : `the delimiter ${named}`}.`);
    expect(message).toContain("must be a comma, a semicolon or a tab");
  });

  test("a header whose first column begins with `sep=` does not declare a delimiter", async () => {
    expect(await read("sep=|,name\r\nx,Bo\r\n")).toEqual(["sep=| | name", "x | Bo"]);
  });

  test.each([
    ["has other characters than Latin-1 in 0x80 to 0x9F", [0x80, 0x92, 0x96, 0x9c, 0xe9], "€’–œé"],
    [
      "leaves five bytes undefined, which are control characters, as in a browser",
      [0xe9, 0x81, 0x8d, 0x8f, 0x90, 0x9d],
      "é\u0081\u008D\u008F\u0090\u009D",
    ],
  ])("Windows-1252 %s, wherever its bytes are cut", async (_, line, text) => {
    const bytes = Buffer.from([...Buffer.from("n\n"), ...line]);
    for (const chunks of [[bytes], [...bytes].map((byte) => Buffer.of(byte))]) {
      expect((await rowsOf(chunks)).map(({ cells }) => cells)).toEqual([["n"], [text]]);
    }
  });

  test("a row of no-break and zero-width spaces is blank", async () => {
    expect(await read("name,city\n\u200B\u00A0,\u0085\uFEFF\nBo,x\n")).toEqual(["name | city", "Bo | x"]);
  });

  test.each([
    ["name;city;notes, if any", ";"],
    ['"a,b,c";d', ";"],
    ["name", ","],
    ["\n\na\tb\n", "\t"],
  ])("the delimiter of %j is %j", (header, delimiter) => {
    expect(delimiterOf(header)).toBe(delimiter);
  });

  test.each([",", ";", "\t"])("a row of separators %j alone is blank, before the header too", async (separator) => {
    const lines = ["name,city", ",", " , ,", "Bo,Denver", ",,,,", "Cy,"].map((line) => line.replaceAll(",", separator));
    const rows = [
      { row: 1, cells: ["name", "city"] },
      { row: 4, cells: ["Bo", "Denver"] },
      { row: 6, cells: ["Cy", ""] },
    ];
    expect(await rowsOf([Buffer.from(`sep=${separator}\n${lines.join("\n")}`)])).toEqual(rows);
    const [first] = await rowsOf([Buffer.from(`sep=${separator}\n${[separator, ...lines].join("\n")}`)]);
    expect(first).toEqual({ row: 2, cells: ["name", "city"] });
  });

  test("a quotation mark inside an unquoted cell is text", async () => {
    expect(await read('a,b\n6" pipe,x\n')).toEqual(["a | b", '6" pipe | x']);
  });

  test("blank lines and rows with too few or too many cells create no Error object", async () => {
    const made = vi.spyOn(Error, "captureStackTrace");
    onTestFinished(() => made.mockRestore());
    expect(await rowsOf([Buffer.from(`a,b\n${"\n".repeat(100)}${"x\n1,2,3\n".repeat(100)}`)])).toHaveLength(201);
    expect(made).not.toHaveBeenCalled();
  });

  test.each([
    ["NUL outside of UTF-8", Buffer.from("name\nJos\xe9 \x00\n", "latin1")],
    ["DEL outside of UTF-8", Buffer.from("name\nJos\xe9 \x7f\n", "latin1")],
    ["a control character outside of UTF-8", Buffer.from("name\nJos\xe9 \x01\n", "latin1")],
    ["UTF-16 cut within a character", Buffer.from("\uFEFFname", "utf16le").subarray(0, 9)],
    ["an xlsx file", Buffer.from("504b03041400000008006ba1d8cc8f", "hex")],
    ["an xls file", Buffer.from("d0cf11e0a1b11ae1", "hex")],
    ["gzip", Buffer.from("1f8b0800000000000003ab", "hex")],
    ["quotes that do not end", Buffer.from('name,city\n"Bo,Denver\nEve,Boulder\n')],
  ])("%s is not CSV", async (_, bytes) => {
    await expect(rowsOf([bytes])).rejects.toBeInstanceOf(BadFile);
  });
});

/** Counts the characters that have several bytes, and the invalid bytes. It calls the decoder of Node.js for one character at a time. */
function utf8Of(bytes: Uint8Array): { characters: number; invalid: number } {
  let [characters, invalid] = [0, 0];
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find((size) => {
      const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(at, at + size));
      return Buffer.from(text).equals(bytes.subarray(at, at + size)) && [...text].length === 1;
    });
    if (length === undefined) invalid++;
    else if (length > 1) characters++;
    at += length ?? 1;
  }
  return { characters, invalid };
}

test("an invalid byte of UTF-8 is refused with its row and the header of its column, wherever the bytes are cut", async () => {
  const parts = ['\uFEFFNaïve header,City\r\n\uFFFDBo,x\r\n\r\n"a\nb",', "é,Denver\r\nCy,y\r\n"];
  const bytes = Buffer.concat([Buffer.from(parts[0] ?? ""), Buffer.of(0xe2, 0x82), Buffer.from(parts[1] ?? "")]);
  for (const chunks of [[bytes], [...bytes].map((byte) => Buffer.of(byte)), [bytes.subarray(3)]]) {
    await expect(rowsOf(chunks)).rejects.toThrow('Row 4 has a byte in the column "City" that is not valid in UTF-8.');
  }
  const [inHeader, beyond] = ["name,C\xe9\nx", "name\nx,\xe9"].map((text) =>
    Buffer.from(`\xef\xbb\xbf${text}`, "latin1"),
  );
  await expect(rowsOf([inHeader ?? bytes])).rejects.toThrow('Row 1 has a byte in the column "C');
  await expect(rowsOf([beyond ?? bytes])).rejects.toThrow("Row 2 has a byte in column 2 that");
});

test("a file with as many invalid bytes as UTF-8 characters is not UTF-8", { tags: "sized" }, async () => {
  const unit = fc.oneof(
    fc.string({ unit: "binary", maxLength: 3 }).map((text) => Buffer.from(text.toWellFormed())),
    fc.uint8Array({ minLength: 1, maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(unit, { maxLength: 8 }), fc.integer({ min: 1, max: 5 }), async (units, size) => {
      const bytes = Buffer.concat([Buffer.from("name\n"), ...units]);
      const { characters, invalid } = utf8Of(bytes);
      const encoding = invalid === 0 || characters > invalid ? "utf-8" : "windows-1252";
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.subarray(i * size, (i + 1) * size),
      );
      expect(await encodingOf(chunks)).toBe(encoding);
    }),
    { numRuns: sized({ short: 30, wide: 500 }) },
  );
});

test("a final 0x1A ends the file", async () => {
  for (const [bytes, cells] of [
    [Buffer.from("name\r\nBo\r\n\x1A"), ["Bo"]],
    [Buffer.from("name\nJos\xe9\x1A", "latin1"), ["José"]],
    [Buffer.from("\uFEFFname\nBo\n\x1A", "utf16le"), ["Bo"]],
    [Buffer.from("name\nB\x1Ao\n\x1A"), ["B\x1Ao"]],
  ] as const) {
    for (const chunks of [[bytes], [...bytes].map((byte) => Buffer.of(byte))]) {
      expect((await rowsOf(chunks)).slice(1).map((row) => row.cells)).toEqual([cells]);
    }
  }
});

test.each([
  ["nothing", Buffer.alloc(0), "utf-8"],
  ["UTF-8 with one other byte at the end", Buffer.concat([Buffer.from("é".repeat(9_999)), Buffer.of(0xe9)]), "utf-8"],
  ["as many valid characters as invalid bytes", Buffer.from("name\n\xc3\xa9\xe9", "latin1"), "windows-1252"],
  ["a mark of UTF-8 before other bytes", Buffer.from("\xef\xbb\xbfname\nJos\xe9", "latin1"), "utf-8"],
])("%s is found as %s", async (_, bytes, encoding) => {
  expect(await encodingOf([bytes])).toBe(encoding);
  expect(await encodingOf([...bytes].map((byte) => Buffer.of(byte)))).toBe(encoding);
});

test.each([
  ["a line without an end", "", "x"],
  ["a quoted cell without an end", 'name\n"', "x\n"],
  ["a million columns", "name", ","],
  ["a row without an end of empty cells", "name\n", ","],
  ["blank lines", "name\n", "\n"],
  ["lines of blanks", "name\n", " \r\n"],
  ["lines of separators", "name\n", ",,,\r\n"],
])("%s is refused long before a gigabyte is read", async (_, beginning, unit) => {
  const piece = Buffer.from(unit.repeat(Math.ceil(65_536 / unit.length)));
  let taken = 0;
  function* file(): Generator<Buffer> {
    yield Buffer.from(beginning);
    for (; taken < 16_384; taken++) yield piece;
  }
  await expect(rowsOf(file())).rejects.toBeInstanceOf(BadFile);
  expect(taken).toBeLessThan(64);
});

describe("a row", () => {
  const names = { statuses: new Map([["go back", 3]]), users: new Map([["ravi@example.com", 7]]) };
  const header = readHeader("NAME, Email ,lat,lng,address1,city,state,zip,Status,AssignedTo".split(","));
  const located = ["Bo", "", "39.7", "-104.9", "", "", "", "", "", ""];
  const draft = (...changes: [place: number, cell: string][]) => draftUnder(header, ...changes);
  const draftUnder = (under: Header, ...changes: [place: number, cell: string][]) => {
    const cells = [...located];
    for (const [place, cell] of changes) cells[place] = cell;
    return draftOf(cells, under, names);
  };

  test("may have decimal commas, unless the comma separates its cells", () => {
    const semicolons = readHeader("name,e,lat,lng,a,b,c,d,e,f".split(","), { delimiter: ";" });
    expect(draftUnder(semicolons, [2, "39,7392"], [3, " -104,99"])).toMatchObject({ lat: 39.7392, lng: -104.99 });
    expect(draftUnder(semicolons, [2, "39.7392"])).toMatchObject({ lat: 39.7392 });
    for (const cell of ["1.234,5", "1,2,3", ","]) {
      expect(draftUnder(semicolons, [2, cell]), cell).toMatchObject({ plain: "lat: must be a number" });
    }
    expect(draft([2, "39,7392"])).toMatchObject({ plain: "lat: must be a number" });
  });

  test("becomes a draft of a prospect with the values of its cells", () => {
    const place = { lat: 39.7, lng: -104.9, address: null };
    expect(draft([8, " GO back "], [9, "Ravi@Example.com "], [1, " bo@example.com"])).toMatchObject({
      ...{ name: "Bo", emailAddress: "bo@example.com", ...place, statusId: 3, assignedToUserId: 7, tags: [] },
    });
  });

  test("reads a cell of blanks as an empty one", () => {
    const blank = " \u200B\u0085\uFEFF\u3000";
    expect(draft([0, blank], [1, blank], [8, blank], [9, blank])).toEqual(draft([0, ""]));
    const address = [4, 5, 6, 7].map((place): [number, string] => [place, blank]);
    expect(draft([2, ""], [3, blank], ...address)).toMatchObject({
      fault: "must have address1, city, state and zip, or both lat and lng",
    });
    expect(draft([0, ` ${blank}x `])).toMatchObject({ name: ` ${blank}x ` });
  });

  test("needs no coordinates if its address is complete; an incomplete address is left out", () => {
    const address = [4, 5, 6, 7].map((place): [number, string] => [place, "x"]);
    expect(draft([2, ""], [3, ""], ...address)).toMatchObject({ lat: null, address: { address1: "x", zip: "x" } });
    expect(draft([5, "Denver"])).toMatchObject({ address: null, lat: 39.7 });
  });

  test.each([
    ["north", 2, "lat: must be a number"],
    ["91", 2, "lat: must be a latitude from -90 to 90 degrees (a longitude may be in its place)"],
    ["-181000", 3, "lng: must be a longitude from -180 to 180 degrees (metres are not accepted)"],
    ["1e999", 3, "lng: must be a number"],
    ["bo@", 1, "email: must be a valid e-mail address"],
    ["Sold", 8, "status: must be the value of an active status"],
    ["Ravi Rep", 9, "assignedTo: must be the e-mail of an active user"],
    ["", 3, "must have address1, city, state and zip, or both lat and lng, but lng is empty"],
    ["x".repeat(256), 0, "name: must have at most 255 characters"],
  ] as const)("with the cell %j in column %s reports its fault", (cell, place, fault) => {
    expect(draft([place, cell])).toMatchObject({ plain: fault });
  });

  test("reports all its faults", () => {
    const faults = "lat: must be a number; status: must be the value of an active status";
    expect(draft([2, "x"], [8, "Sold"])).toMatchObject({ plain: faults });
  });

  test.each([4, 9, 11, 30])("of %i cells under a header of 10 is like one of 10, if the others are empty", (count) => {
    const cells = Array.from({ length: count }, (_, i) => located[i] ?? " ");
    expect(draftOf(cells, header, names)).toEqual(draftOf(located, header, names));
    expect(draftOf(cells, header, names)).toMatchObject({ name: "Bo", lat: 39.7, statusId: null });
  });

  test("with a filled cell after the last column of the header is refused", () => {
    const fault = "must have at most 10 cells like the header, but has 12";
    expect(draftOf([...located, "", "x"], header, names)).toEqual({ fault });
  });

  test("reads the assignee's e-mail address from the separate column if that column is filled", () => {
    const wide = readHeader([...exportColumns]);
    const filled = { assignedTo: "Ravi Rep", assignedToEmail: "ravi@example.com", lat: "1", lng: "1" };
    const cells = exportColumns.map((column) => new Map(Object.entries(filled)).get(column) ?? "");
    expect(draftOf(cells, wide, names)).toMatchObject({ assignedToUserId: 7 });
  });
});

test("a header names the columns that the import does not read", () => {
  const header = readHeader(["id", "Name", " Favourite colour ", "", "x", "x".repeat(500)], { mapping: { x: null } });
  expect(header.ignored).toEqual(["id", "Favourite colour", "x", "x".repeat(100)]);
  expect(header.unnamed).toEqual([3]);
  expect(readHeader(["name", ...Array.from({ length: 5_000 }, (_, i) => `c${i}`)]).ignored).toHaveLength(100);
});

test.each([[["x", "y"]], [["id", "createdAt"]]])("%j is not a header", (cells) => {
  expect(() => readHeader(cells)).toThrow(BadFile);
});
