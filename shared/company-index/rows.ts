/** The rows of a segment as objects again, for merging and checking. */
import type { NoteText } from "#shared/company-index/row.ts";
import type { RowWithNotes, SegmentColumns, TextColumns } from "#shared/company-index/segment.ts";

/** Row by row in the segment's order, with the notes that stand in it. */
export function* rowsOf({ main, geo, text }: SegmentColumns): Generator<RowWithNotes> {
  let entry = 0;
  for (let row = 0; row < main.count; row++) {
    const id = main.ids[row] ?? 0;
    const own = textOf(text, entry++);
    const notes: NoteText[] = [];
    for (; text.rowOf[entry] === row && entry < text.rowOf.length; entry++) {
      const [noteId = 0, version = 0] = [text.noteIds[entry], text.noteVersions[entry]];
      notes.push({ prospectId: id, noteId, version, text: textOf(text, entry) });
    }
    yield {
      row: {
        id,
        version: main.versions[row] ?? 0,
        createdAt: main.createdAt[row] ?? 0,
        statusId: main.statusId.values[main.statusId.codes[row] ?? 0] ?? null,
        assignedToUserId: main.assignedToUserId.values[main.assignedToUserId.codes[row] ?? 0] ?? null,
        tagIds: main.tagIds.values[main.tagIds.codes[row] ?? 0] ?? [],
        city: main.city.values[main.city.codes[row] ?? 0] ?? null,
        lat: degreesOrNull(geo.lat[row]),
        lng: degreesOrNull(geo.lng[row]),
        text: own,
        phoneDigits: text.digits.toString("utf8", text.digitStarts[row], (text.digitStarts[row + 1] ?? 1) - 1),
      },
      notes,
    };
  }
}

/** Without the line break at its end. */
const textOf = ({ bytes, starts }: TextColumns, entry: number): string =>
  bytes.toString("utf8", starts[entry], (starts[entry + 1] ?? 1) - 1);

const degreesOrNull = (degrees: number | undefined): number | null =>
  degrees === undefined || Number.isNaN(degrees) ? null : degrees;
