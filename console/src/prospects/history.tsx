/** The sections of the panel of a prospect: notes, appointments, and the history of its status. */
import type { ProspectDetail } from "canvassing-client/api";
import { type ReactNode, useState } from "react";
import * as limits from "../../../shared/limits.ts";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { addNote, NOTE, prospectRecord } from "../api/notes.ts";
import { nameOf } from "../api/reference.ts";
import { DraftNote, useDraft, useDrafts } from "../drafts/draft.tsx";
import { Badge, type BadgeKinds, StatusMark } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Field, Input, TextArea } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { timeText } from "../ui/text.ts";
import { Time } from "../ui/time.tsx";
import { titleOf } from "./columns.tsx";
import style from "./drawer.module.css";
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

/** Maximum characters of a time in a draft. A local time such as `2030-05-06T10:30` has fewer. */
const LOCAL_TIME = 40;

const kinds: BadgeKinds = { scheduled: "plain", completed: "good", cancelled: "warn", no_show: "bad" };

export function Appointments({ prospect }: { prospect: ProspectDetail }) {
  const { appointments } = prospect;
  const [isOpen, setOpen] = useState(false);
  return (
    <Section title="Appointments">
      {appointments.length === 0 && <p className="muted">There are no appointments.</p>}
      <ol className="stack tight list">
        {appointments.map(({ id: appointment, title, startAt, status, location }) => (
          <li key={appointment}>
            {title} <Badge kind={kinds[status]}>{status.replace("_", " ")}</Badge>
            <br />
            <small className="muted">
              {timeText(startAt)}
              {location === null ? "" : `, ${location}`}
            </small>
          </li>
        ))}
      </ol>
      <div>
        <Button onClick={() => setOpen(true)}>New appointment</Button>
      </div>
      {isOpen && <NewAppointment prospect={prospect} onClose={() => setOpen(false)} />}
    </Section>
  );
}

function NewAppointment({ prospect, onClose }: { prospect: ProspectDetail; onClose: () => void }) {
  const { id } = prospect;
  const draft = useDraft(
    {
      record: prospectRecord(id),
      title: `Appointment with ${titleOf(prospect)}`,
      path: `/prospects?prospect=${id}`,
    },
    { title: ["Visit", limits.appointmentTitle], startAt: ["", LOCAL_TIME] },
  );
  const [title, startAt] = [draft.text("title"), draft.text("startAt")];
  const create = useChange({
    run: () =>
      answer(
        api.POST("/api/prospects/{id}/appointments", {
          params: { path: { id } },
          body: { title, startAt: new Date(startAt).toISOString() },
        }),
      ),
    stale: PROSPECTS,
    onDone: () => {
      draft.discard();
      onClose();
    },
  });
  return (
    <FormDialog
      title="New appointment"
      submit="Create the appointment"
      request={create}
      draft={draft}
      onClose={onClose}
    >
      <Field label="Title" name="title">
        <Input required {...draft.control("title")} />
      </Field>
      <Field label="Begins at" name="startAt" hint="In the time zone of this device">
        <Input type="datetime-local" required {...draft.control("startAt")} />
      </Field>
    </FormDialog>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={`${style.section} stack tight`}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

type Made = Pick<ProspectDetail["notes"][number], "createdAt" | "occurredAt"> & {
  readonly by: ProspectDetail["notes"][number]["createdBy"];
};

/** Who has done something, and when. */
function MadeBy({ by, createdAt, occurredAt }: Made) {
  return (
    <small className="muted">
      {by === null ? "" : `${nameOf(by)}, `}
      <Time iso={occurredAt ?? createdAt} />
    </small>
  );
}

export function History({ prospect: { statusHistory } }: { prospect: ProspectDetail }) {
  return (
    <Section title="History">
      {statusHistory.length === 0 && <p className="muted">The status has not been set yet.</p>}
      <ol className="stack tight list">
        {statusHistory.map(({ id, status, changedBy, ...made }) => (
          <li key={id} className="row between">
            <StatusMark status={status} />
            <MadeBy by={changedBy} {...made} />
          </li>
        ))}
      </ol>
    </Section>
  );
}
