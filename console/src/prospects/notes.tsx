/** The notes of a prospect, and a field for another one. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ProspectDetail } from "canvassing-client/api";
import * as limits from "../../../shared/limits.ts";
import { addNote, NOTE, prospectRecord } from "../api/notes.ts";
import { nameOf } from "../api/reference.ts";
import { DraftNote, useDraft, useDrafts } from "../drafts/draft.tsx";
import { Button } from "../ui/button.tsx";
import { Field, TextArea } from "../ui/field.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { timeText } from "../ui/text.ts";
import { titleOf } from "./columns.tsx";
import style from "./drawer.module.css";
import { forgetProspects } from "./queries.ts";

export function Notes({ prospect }: { prospect: ProspectDetail }) {
  const { id, notes } = prospect;
  const queries = useQueryClient();
  const record = prospectRecord(id);
  const { store } = useDrafts();
  const draft = useDraft(
    { record, title: `Note for ${titleOf(prospect)}`, path: `/prospects?prospect=${id}` },
    { [NOTE]: ["", limits.note] },
  );
  const text = draft.text(NOTE);
  const add = useMutation({
    mutationFn: (body: string) => addNote(id, body),
    onSuccess: (_, body) => {
      // The user may have typed more while the request ran, or opened another prospect. Only the text that was sent is removed.
      const now = store
        .all()
        .find((one) => one.record === record && one.field === NOTE)
        ?.text.trimStart();
      if (now?.startsWith(body) === true) draft.change(NOTE, now.slice(body.length).trimStart());
      return forgetProspects(queries);
    },
    onError: notifyFailed,
  });
  return (
    <section className={style.section}>
      <h3>Notes</h3>
      <ol className={style.events}>
        {notes.map(({ id: note, body, createdBy, createdAt, occurredAt }) => (
          <li key={note}>
            <p>{body}</p>
            <small>
              {createdBy === null ? "" : `${nameOf(createdBy)}, `}
              {timeText(occurredAt ?? createdAt)}
            </small>
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
    </section>
  );
}
