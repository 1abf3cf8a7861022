/**
 * Long texts of unflushed entries. They stand beside the entries, in a partition of their own, so that a list does not pay for what only
 * a search looks into: one row for each, under the entry's sort key, written with it and never changed.
 */
import * as z from "zod/mini";
import { type IndexEntry, isTombstone, type NoteEntry } from "#shared/company-index/row.ts";
import type { Delta, RunsInView } from "#shared/company-index/view.ts";
import type { Item } from "#shared/db/item.ts";
import { keys } from "#shared/db/keys.ts";
import type { Table } from "#shared/db/table.ts";

export interface Filled {
  readonly delta: Delta;
  /** Entries without their texts: they are being flushed, or were written at this very instant. */
  readonly missing: number;
}

interface AsideText {
  readonly text: string;
  readonly phoneDigits: string;
}

/** By the sort keys of their entries. */
export type AsideTexts = ReadonlyMap<string, AsideText>;

const Stored = z.object({ sk: z.string(), text: z.string(), phoneDigits: z._default(z.string(), "") });

/** All that there are, at half the price of a strong read: what it does not find yet is asked for by its key. */
export async function readAsideTexts(table: Table, companyId: number): Promise<AsideTexts> {
  const texts = new Map<string, AsideText>();
  for await (const item of table.query({ ...keys.deltaTexts(companyId), consistency: "eventual" })) keep(item, texts);
  return texts;
}

function keep(item: Item, into: Map<string, AsideText>): void {
  const { sk, text, phoneDigits } = Stored.parse(item);
  into.set(sk, { text, phoneDigits });
}

/**
 * The same entries with their texts. `aside`: sort keys of those that have theirs beside them. A flush takes the text away before its
 * entry: an entry without one is left out where the runs have that very version, and counted as missing where they do not.
 */
export async function withTexts(
  table: Table,
  companyId: number,
  { prospects, notes }: Delta,
  runs: Pick<RunsInView, "prospectVersions" | "noteVersions">,
  aside: ReadonlySet<string>,
  known: AsideTexts = new Map(),
): Promise<Filled> {
  if (aside.size === 0) return { delta: { prospects, notes }, missing: 0 };
  const texts = new Map(known);
  const wanted = [...[...prospects.values()].map(skOfProspect), ...[...notes.values()].map(skOfNote)];
  const left = wanted.filter((sk) => aside.has(sk) && !texts.has(sk));
  for (const item of await table.batchGet(left.map((sk) => keys.deltaText(companyId, sk)))) keep(item, texts);
  let missing = 0;
  /** Undefined: the runs have it. */
  function filled<T extends { readonly version: number }>(entry: T, sk: string, flushed: number): T | undefined {
    const found = texts.get(sk);
    if (!aside.has(sk) || found !== undefined) return { ...entry, ...found };
    if (flushed < entry.version) missing++;
    return undefined;
  }
  const delta = {
    prospects: mapped(prospects, (entry, id) =>
      isTombstone(entry) ? entry : filled(entry, skOfProspect(entry), runs.prospectVersions.versionOf(id)),
    ),
    notes: mapped(notes, (entry, id) => filled(entry, skOfNote(entry), runs.noteVersions.versionOf(id))),
  };
  return { delta, missing };
}

// Sort keys are the same in every company.
const skOfProspect = ({ id, version }: IndexEntry): string => keys.prospectDelta(0, id, version).sk;
const skOfNote = ({ prospectId, noteId, version }: NoteEntry): string =>
  keys.noteDelta(0, prospectId, noteId, version).sk;

function mapped<T>(from: ReadonlyMap<number, T>, work: (entry: T, id: number) => T | undefined): Map<number, T> {
  const into = new Map<number, T>();
  for (const [id, entry] of from) {
    const result = work(entry, id);
    if (result !== undefined) into.set(id, result);
  }
  return into;
}
