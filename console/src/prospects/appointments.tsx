/** The appointments of a prospect, and a form for another one. */
import type { ProspectDetail } from "canvassing-client/api";
import { useState } from "react";
import * as limits from "../../../shared/limits.ts";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { prospectRecord } from "../api/notes.ts";
import { DraftNote, useDraft } from "../drafts/draft.tsx";
import { Badge, type BadgeKinds } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Field, Input } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { timeText } from "../ui/text.ts";
import { titleOf } from "./columns.tsx";
import { Section } from "./events.tsx";
import { PROSPECTS } from "./queries.ts";

/** More than the characters of a local time, such as `2030-05-06T10:30`. */
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
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <Field label="Title" name="title">
        <Input required {...draft.control("title")} />
      </Field>
      <Field label="Begins at" name="startAt" hint="In the time zone of this device">
        <Input type="datetime-local" required {...draft.control("startAt")} />
      </Field>
      <DraftNote draft={draft} />
    </FormDialog>
  );
}
