/** The fields of a form whose texts are drafts until the user sends or discards them. */
import { type ChangeEvent, createContext, use, useSyncExternalStore } from "react";
import { Button } from "../ui/button.tsx";
import { timeText } from "../ui/text.ts";
import type { Draft, Drafts } from "./store.ts";

export const DraftsContext = createContext<Drafts | undefined>(undefined);

export function useDrafts(): { readonly store: Drafts; readonly all: readonly Draft[] } {
  const store = use(DraftsContext);
  if (store === undefined) throw new Error("there is no DraftsContext");
  return { store, all: useSyncExternalStore(store.subscribe, store.all) };
}

/** The record to which drafts belong, with the title and the page that a list of all drafts shows. */
export interface Place {
  readonly record: string;
  readonly title: string;
  readonly path: string;
}

/** For each field, the text that it shows if there is no draft, and the maximum number of characters of a draft. */
type Fields<F extends string> = Readonly<Record<F, readonly [text: string, limit: number]>>;

export interface DraftOf<F extends string> {
  readonly drafts: readonly Draft[];
  /** Returns the user's draft of the field, or the text in `Fields` if there is no draft. */
  readonly text: (field: F) => string;
  readonly change: (field: F, text: string) => void;
  /** Returns the attributes of the element with which the user edits the field. */
  readonly control: (field: F) => {
    readonly value: string;
    readonly onChange: (event: ChangeEvent<HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement>) => void;
  };
  /** Deletes the drafts of the named fields. Without names, deletes the drafts of all fields. */
  readonly discard: (...fields: readonly F[]) => void;
}

export function useDraft<F extends string>(place: Place, fields: Fields<F>): DraftOf<F> {
  const { store, all } = useDrafts();
  const { record } = place;
  const drafts = all.filter((draft) => draft.record === record && draft.field in fields);
  const text = (field: F): string => drafts.find((draft) => draft.field === field)?.text ?? fields[field][0];
  const change = (field: F, changed: string): void => {
    const [usual, limit] = fields[field];
    if (changed === usual) store.drop(record, [field]);
    else store.save({ ...place, field, text: changed }, limit);
  };
  return {
    drafts,
    text,
    change,
    control: (field) => ({ value: text(field), onChange: ({ target }) => change(field, target.value) }),
    discard: (...names) => store.drop(record, names.length === 0 ? Object.keys(fields) : names),
  };
}

/** Says that a form contains drafts, or why the browser cannot keep them. A button discards them. */
export function DraftNote({ draft }: { draft: { readonly drafts: readonly Draft[]; readonly discard: () => void } }) {
  const { drafts, discard } = draft;
  const [first] = drafts.toSorted((a, b) => a.savedAt - b.savedAt);
  if (first === undefined) return null;
  return (
    <div className="row between">
      <small className="muted">
        {drafts.find(({ fault }) => fault !== undefined)?.fault ??
          `A draft of ${timeText(new Date(first.savedAt).toISOString())}. It is not sent yet.`}
      </small>
      <Button kind="quiet" onClick={() => discard()}>
        Discard the draft
      </Button>
    </div>
  );
}
