/** The notes of a prospect, and a field for another one. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ProspectDetail } from "canvassing-client/api";
import { useState } from "react";
import { answer, api } from "../api/client.ts";
import { nameOf } from "../api/reference.ts";
import { Button } from "../ui/button.tsx";
import { Field, TextArea } from "../ui/field.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { timeText } from "../ui/text.ts";
import style from "./drawer.module.css";
import { forgetProspects } from "./queries.ts";

export function Notes({ prospect: { id, notes } }: { prospect: ProspectDetail }) {
  const queries = useQueryClient();
  const [text, setText] = useState("");
  const add = useMutation({
    mutationFn: (body: string) =>
      answer(api.POST("/api/prospects/{id}/notes", { params: { path: { id } }, body: { body } })),
    onSuccess: () => {
      setText("");
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
        <TextArea value={text} onChange={({ target }) => setText(target.value)} />
      </Field>
      <div>
        <Button disabled={text.trim() === "" || add.isPending} onClick={() => add.mutate(text.trim())}>
          Add note
        </Button>
      </div>
    </section>
  );
}
