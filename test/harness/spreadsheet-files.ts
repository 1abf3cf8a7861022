/** Creates CSV files as spreadsheet programs save them, with their delimiters, encodings, line ends, quotes and decimal signs. */

export interface SpreadsheetFile {
  /** The name of the program and of its menu command that saves such a file. */
  readonly saved: string;
  readonly encoding: "utf-8" | "utf-16le" | "windows-1252";
  readonly hasDecimalComma: boolean;
  /** Numbers are written with the program's decimal sign. */
  readonly bytes: (rows: readonly (readonly (string | number)[])[]) => Uint8Array<ArrayBuffer>;
}

interface Style {
  readonly delimiter: "," | ";" | "\t";
  readonly encoding?: SpreadsheetFile["encoding"];
  readonly mark?: boolean;
  readonly first?: string;
  readonly lineEnd?: "\r\n" | "\n";
  readonly endsLastLine?: boolean;
  readonly quotesTexts?: boolean;
  readonly hasDecimalComma?: boolean;
}

/** The characters of the Windows-1252 bytes 0x80 to 0x9F, in order. A space means that the byte has no character. */
const c1 = [..."€ ‚ƒ„…†‡ˆ‰Š‹Œ Ž  ‘’“”•–—˜™š›œ žŸ"];

function inWindows1252(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([...text], (letter) => {
    const code = letter.charCodeAt(0);
    if (code < 0x80 || (code >= 0xa0 && code <= 0xff)) return code;
    const at = c1.indexOf(letter);
    // A spreadsheet program saves a question mark (0x3f) for a character that the encoding does not contain.
    return at === -1 ? 0x3f : 0x80 + at;
  });
}

function composed(saved: string, style: Style): SpreadsheetFile {
  const { delimiter, encoding = "utf-8", mark = false, first = "", lineEnd = "\r\n", endsLastLine = true } = style;
  const { quotesTexts = false, hasDecimalComma = false } = style;
  const cellOf = (cell: string | number): string => {
    if (typeof cell === "number") return hasDecimalComma ? String(cell).replace(".", ",") : String(cell);
    const needsQuotes = cell.includes(delimiter) || /["\r\n]/.test(cell) || (quotesTexts && cell !== "");
    return needsQuotes ? `"${cell.replaceAll('"', '""')}"` : cell;
  };
  return {
    saved,
    encoding,
    hasDecimalComma,
    bytes: (rows) => {
      const lines = rows.map((cells) => cells.map(cellOf).join(delimiter)).join(lineEnd);
      const text = `${mark ? "\uFEFF" : ""}${first}${lines}${endsLastLine ? lineEnd : ""}`;
      if (encoding === "windows-1252") return inWindows1252(text);
      return Uint8Array.from(Buffer.from(text, encoding === "utf-8" ? "utf8" : "utf16le"));
    },
  };
}

export const spreadsheetFiles: readonly SpreadsheetFile[] = [
  composed("Excel in English: Save As, CSV (Comma delimited)", { delimiter: ",", encoding: "windows-1252" }),
  composed("Excel in German: Speichern unter, CSV (Trennzeichen-getrennt)", {
    delimiter: ";",
    encoding: "windows-1252",
    hasDecimalComma: true,
  }),
  composed("Excel in English: Save As, CSV UTF-8", { delimiter: ",", mark: true }),
  composed("Excel in German: Speichern unter, CSV UTF-8", { delimiter: ";", mark: true, hasDecimalComma: true }),
  composed("Excel: Save As, Unicode Text", { delimiter: "\t", encoding: "utf-16le", mark: true }),
  composed("a first line sep=; that makes Excel open the file in columns", { delimiter: ";", first: "sep=;\r\n" }),
  composed("LibreOffice on Linux: Save As, Text CSV, with its default settings", { delimiter: ",", lineEnd: "\n" }),
  composed("LibreOffice on Linux: Save As, Text CSV, with quoted text cells", {
    delimiter: ",",
    lineEnd: "\n",
    quotesTexts: true,
  }),
  composed("Google Sheets: Download, Comma-separated values", { delimiter: ",", endsLastLine: false }),
];
