/** The appointments of a prospect, and a form for another one. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ProspectDetail } from "canvassing-client/api";
import { useState } from "react";
import { answer, api } from "../api/client.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Field, Input } from "../ui/field.tsx";
import { Form } from "../ui/form.tsx";
import { Modal } from "../ui/modal.tsx";
import { timeText } from "../ui/text.ts";
import style from "./drawer.module.css";
import { forgetProspects } from "./queries.ts";

const kinds = { scheduled: "plain", completed: "good", cancelled: "warn", no_show: "bad" } as const;

export function Appointments({ prospect: { id, appointments } }: { prospect: ProspectDetail }) {
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
      {isOpen && <NewAppointment prospectId={id} onClose={() => setOpen(false)} />}
    </section>
  );
}

function NewAppointment({ prospectId, onClose }: { prospectId: number; onClose: () => void }) {
  const queries = useQueryClient();
  const [title, setTitle] = useState("Visit");
  const [startAt, setStartAt] = useState("");
  const create = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/prospects/{id}/appointments", {
          params: { path: { id: prospectId } },
          body: { title, startAt: new Date(startAt).toISOString() },
        }),
      ),
    onSuccess: () => {
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
          <Input required value={title} onChange={({ target }) => setTitle(target.value)} />
        </Field>
        <Field label="Begins at" name="startAt" hint="In the time zone of this device">
          <Input type="datetime-local" required value={startAt} onChange={({ target }) => setStartAt(target.value)} />
        </Field>
      </Form>
    </Modal>
  );
}
