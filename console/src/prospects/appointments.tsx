/** The appointments of a prospect, and a form for another one. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ProspectDetail } from "canvassing-client/api";
import { useState } from "react";
import * as limits from "../../../shared/limits.ts";
import { answer, api } from "../api/client.ts";
import { prospectRecord } from "../api/notes.ts";
import { DraftNote, useDraft } from "../drafts/draft.tsx";
import { Badge, type BadgeKinds } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Field, Input } from "../ui/field.tsx";
import { Form } from "../ui/form.tsx";
import { Modal } from "../ui/modal.tsx";
import { timeText } from "../ui/text.ts";
import { titleOf } from "./columns.tsx";
import style from "./drawer.module.css";
import { forgetProspects } from "./queries.ts";

/** More than the characters of a local time, such as `2030-05-06T10:30`. */
const LOCAL_TIME = 40;

const kinds: BadgeKinds = { scheduled: "plain", completed: "good", cancelled: "warn", no_show: "bad" };

export function Appointments({ prospect }: { prospect: ProspectDetail }) {
  const { appointments } = prospect;
  const [isOpen, setOpen] = useState(false);
  return (
    <section className={style.section}>
      <h3>Appointments</h3>
      {appointments.length === 0 && <p className={style.none}>There are no appointments.</p>}
      <ol className={style.events}>
        {appointments.map(({ id: appointment, title, startAt, status, location }) => (
          <li key={appointment}>
            <span>
              {title} <Badge kind={kinds[status]}>{status.replace("_", " ")}</Badge>
            </span>
            <small>
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
    </section>
  );
}

function NewAppointment({ prospect, onClose }: { prospect: ProspectDetail; onClose: () => void }) {
  const { id } = prospect;
  const queries = useQueryClient();
  const draft = useDraft(
    {
      record: prospectRecord(id),
      title: `Appointment with ${titleOf(prospect)}`,
      path: `/prospects?prospect=${id}`,
    },
    { title: ["Visit", limits.appointmentTitle], startAt: ["", LOCAL_TIME] },
  );
  const [title, startAt] = [draft.text("title"), draft.text("startAt")];
  const create = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/prospects/{id}/appointments", {
          params: { path: { id } },
          body: { title, startAt: new Date(startAt).toISOString() },
        }),
      ),
    onSuccess: () => {
      draft.discard();
      onClose();
      return forgetProspects(queries);
    },
  });
  return (
    <Modal title="New appointment" onClose={onClose}>
      <Form
        submit="Create the appointment"
        isBusy={create.isPending}
        error={create.error}
        onSubmit={() => create.mutate()}
      >
        <Field label="Title" name="title">
          <Input required {...draft.control("title")} />
        </Field>
        <Field label="Begins at" name="startAt" hint="In the time zone of this device">
          <Input type="datetime-local" required {...draft.control("startAt")} />
        </Field>
        <DraftNote draft={draft} />
      </Form>
    </Modal>
  );
}
