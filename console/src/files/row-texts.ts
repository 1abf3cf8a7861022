/** Finds rows of a CSV file, so that the page can show a row beside its fault. */
import { beginningOf } from "../../../shared/prospects/csv/format.ts";

/** Maximum number of characters that are returned of each row. */
const MOST = 300;

/**
 * Where in a cell the next character is. `quote`: the last character was a quotation mark in a quoted cell. This mark ends the cell unless
 * another quotation mark follows.
 */
type Place = "cell begins" | "plain" | "quoted" | "quote";

/**
 * Returns the texts of the rows with the numbers in `numbers`. Divides the file into rows as the service does with csv-parse. Stops reading
 * after the last of the rows.
 */
export async function rowTexts(
  pieces: AsyncIterable<string>,
  numbers: ReadonlySet<number>,
): Promise<ReadonlyMap<number, string>> {
  const texts = new Map<number, string>();
  const last = Math.max(0, ...numbers);
  let [row, text, place, isAfterReturn]: [number, string, Place, boolean] = [1, "", "cell begins", false];
  const keep = (): void => {
    if (numbers.has(row)) texts.set(row, text.slice(0, MOST));
  };
  for await (const { piece, delimiter } of delimited(pieces)) {
    for (const character of piece) {
      const endsRow = place !== "quoted" && (character === "\n" || character === "\r");
      if (endsRow) {
        if (character === "\n" && isAfterReturn) {
          isAfterReturn = false;
          continue;
        }
        keep();
        if (row === last) return texts;
        [row, text, place] = [row + 1, "", "cell begins"];
      } else {
        if (text.length < MOST) text += character;
        place = next(place, character, delimiter);
      }
      isAfterReturn = endsRow && character === "\r";
    }
  }
  if (text !== "") keep();
  return texts;
}

function next(place: Place, character: string, delimiter: string): Place {
  if (place === "quoted") return character === '"' ? "quote" : "quoted";
  if (character === delimiter) return "cell begins";
  // A quotation mark inside an unquoted cell is text.
  if (character === '"' && place !== "plain") return "quoted";
  return "plain";
}

/** Yields the pieces of the file's text with the delimiter of the file, and without a first line such as `sep=;`. */
async function* delimited(pieces: AsyncIterable<string>): AsyncGenerator<{ piece: string; delimiter: string }> {
  let beginning = "";
  let delimiter: string | undefined;
  for await (const piece of pieces) {
    if (delimiter !== undefined) {
      yield { piece, delimiter };
      continue;
    }
    beginning += piece;
    if (!beginning.trimStart().includes("\n")) continue;
    const begun = beginningOf(beginning);
    delimiter = begun.delimiter;
    yield { piece: begun.rest, delimiter };
  }
  if (delimiter === undefined) {
    const begun = beginningOf(beginning);
    yield { piece: begun.rest, delimiter: begun.delimiter };
  }
}
