/** Finds the notes of the matching prospects. The text columns must be loaded, because they contain the ids of the notes. */
import { doubleAt, uint16At } from "#shared/at.ts";
import { type IndexView, isReplaced } from "#shared/company-index/search/loaded-segment.ts";
import type { Matches } from "#shared/company-index/search/match.ts";
import { NewestVersions, type Versioned } from "#shared/company-index/versions.ts";

export interface LiveNotes {
  count(): number;
  /** Returns the notes of the first `count` prospects (by id) that have notes and an id from `from` to `upTo`, both included. */
  byProspect(from: number, upTo: number, count: number): Map<number, Versioned[]>;
}

export type NotesOf = (view: IndexView, matches: Matches) => LiveNotes;

function* refsOf({ segments, unflushed }: Matches): Generator<Versioned> {
  for (const { inView, rows } of segments) {
    const { ids, versions } = inView.segment.main;
    for (const row of rows) yield { id: doubleAt(ids, row), version: doubleAt(versions, row) };
  }
  yield* unflushed;
}

export function versionsOf(matches: Matches): NewestVersions {
  const versions = new NewestVersions();
  for (const { id, version } of refsOf(matches)) versions.add(id, version, 0);
  return versions;
}

export function liveNotes(view: IndexView, matches: Matches): LiveNotes {
  let visible: NewestVersions | undefined;
  function* all(): Generator<Versioned & { readonly prospectId: number }> {
    visible ??= versionsOf(matches);
    for (const note of notesIn(view)) if (visible.versionOf(note.prospectId) > 0) yield note;
  }
  return {
    count() {
      let count = 0;
      for (const _ of all()) count++;
      return count;
    },
    byProspect(from, upTo, count) {
      let ids = new Set<number>();
      let highest = upTo;
      for (const { prospectId } of all()) {
        if (prospectId < from || prospectId > highest) continue;
        ids.add(prospectId);
        if (ids.size < 2 * count + SPARE) continue;
        ids = new Set([...ids].sort(ascending).slice(0, count));
        highest = Math.max(...ids);
      }
      const wanted = new Map(
        [...ids]
          .sort(ascending)
          .slice(0, count)
          .map((id): [number, Versioned[]] => [id, []]),
      );
      for (const { prospectId, id, version } of all()) wanted.get(prospectId)?.push({ id, version });
      return wanted;
    },
  };
}

/** `byProspect` sorts the collected ids when there are twice the wanted number and this many more. It thus sorts less often. */
const SPARE = 512;

const ascending = (a: number, b: number): number => a - b;

/** Yields the newest version of each note that is not deleted. */
function* notesIn(view: IndexView): Generator<Versioned & { readonly prospectId: number }> {
  for (const { segment, age } of view.segments) {
    const { texts, main } = segment;
    for (let at = 0; at < texts.rowOf.length; at++) {
      const note = texts.noteOf(at);
      if (note < 0) continue;
      const [id, version] = [doubleAt(texts.noteIds, note), doubleAt(texts.noteVersions, note)];
      if (isReplaced(view, id, version, age)) continue;
      yield { id, version, prospectId: doubleAt(main.ids, uint16At(texts.rowOf, at)) };
    }
  }
  for (const { prospectId, noteId, version, age } of view.looseNotes) {
    if (!isReplaced(view, noteId, version, age)) yield { id: noteId, version, prospectId };
  }
  for (const { prospectId, noteId, version, text } of view.delta.notes.values()) {
    if (text !== null) yield { id: noteId, version, prospectId };
  }
}
