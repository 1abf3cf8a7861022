/** The notes of a prospect, and a field for another one. */
import type { ProspectDetail } from "canvassing-client/api";
import * as limits from "../../../shared/limits.ts";
import { useChange } from "../api/change.ts";
import { addNote, NOTE, prospectRecord } from "../api/notes.ts";
import { DraftNote, useDraft, useDrafts } from "../drafts/draft.tsx";
import { Button } from "../ui/button.tsx";
import { Field, TextArea } from "../ui/field.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { titleOf } from "./columns.tsx";
import { MadeBy, Section } from "./events.tsx";
import { PROSPECTS } from "./queries.ts";

export function Notes({ prospect }: { prospect: ProspectDetail }) {
  const { id, notes } = prospect;
  const record = prospectRecord(id);
  const { store } = useDrafts();
  const draft = useDraft(
    { record, title: `Note for ${titleOf(prospect)}`, path: `/prospects?prospect=${id}` },
    { [NOTE]: ["", limits.note] },
  );
  const text = draft.text(NOTE);
  const add = useChange({
    run: (body: string) => addNote(id, body),
    stale: PROSPECTS,
    onDone: (_, body) => {
      // The user may have typed more while the request ran, or opened another prospect. Only the text that was sent is removed.
      const now = store
        .all()
        .find((one) => one.record === record && one.field === NOTE)
        ?.text.trimStart();
      if (now?.startsWith(body) === true) draft.change(NOTE, now.slice(body.length).trimStart());
    },
    onError: notifyFailed,
  });
  return (
    <Section title="Notes">
      <ol className="stack tight list">
        {notes.map(({ id: note, body, createdBy, ...made }) => (
          <li key={note}>
            <p className="typed">{body}</p>
            <MadeBy by={createdBy} {...made} />
          </li>
        ))}
      </ol>
      <Field label="New note">
        <TextArea {...draft.control(NOTE)} />
      </Field>
      <DraftNote draft={draft} />
      <div>
        <Button disabled={text.trim() === "" || add.isPending} onClick={() => add.mutate(text.trim())}>
          Add note
        </Button>
      </div>
    </Section>
  );
}
