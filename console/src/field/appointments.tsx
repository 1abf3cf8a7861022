/** The appointments of a door. A new appointment needs two taps: on the button, and on one of the proposed times. */
import { useState } from "react";
import * as limits from "../../../shared/limits.ts";
import { Button } from "../ui/button.tsx";
import { Field, Input } from "../ui/field.tsx";
import { Form } from "../ui/form.tsx";
import { Modal } from "../ui/modal.tsx";
import { notifyFailed, notifyUndo } from "../ui/notices.tsx";
import { localTime, timeText } from "../ui/text.ts";
import { type Door, type DoorAppointment, targetOf } from "./door.ts";
import style from "./field.module.css";
import { usePhone } from "./phone.ts";

export function Appointments({ door }: { door: Door }) {
  const phone = usePhone();
  const [edited, setEdited] = useState<DoorAppointment | "new">();
  const make = (title: string, startAt: Date): void => {
    setEdited(undefined);
    const fields = { title, startAt: startAt.toISOString() };
    phone.act({ type: "appointment.create", ...targetOf(door), fields }).catch(notifyFailed);
  };
  const change = (id: number, fields: Readonly<Record<string, string>>): Promise<unknown> =>
    phone.act({ type: "appointment.update", id, fields }).catch(notifyFailed);
  const cancel = (id: number, { title, status }: DoorAppointment): void => {
    void change(id, { status: "cancelled" });
    notifyUndo(`Cancelled: ${title}.`, () => void change(id, { status }));
  };
  return (
    <section className={`stack tight ${style.large}`} aria-label="Appointments">
      {door.appointments
        .filter(({ status }) => status === "scheduled")
        .map((one) => {
          const { key, id, title, startAt } = one;
          return (
            <p key={key} className="row">
              <span>
                {title}, {timeText(startAt)}
              </span>
              {id === undefined ? (
                <small>not sent yet</small>
              ) : (
                <>
                  <Button onClick={() => setEdited(one)}>Move</Button>
                  <Button onClick={() => cancel(id, one)}>Cancel</Button>
                </>
              )}
            </p>
          );
        })}
      <Button onClick={() => setEdited("new")}>Appointment</Button>
      {edited !== undefined && (
        <AppointmentDialog
          appointment={edited === "new" ? undefined : edited}
          onClose={() => setEdited(undefined)}
          onSave={(title, startAt) => {
            if (edited === "new" || edited.id === undefined) return make(title, startAt);
            setEdited(undefined);
            void change(edited.id, { title, startAt: startAt.toISOString() });
          }}
        />
      )}
    </section>
  );
}

interface DialogProps {
  readonly appointment: DoorAppointment | undefined;
  readonly onClose: () => void;
  readonly onSave: (title: string, startAt: Date) => void;
}

function AppointmentDialog({ appointment, onClose, onSave }: DialogProps) {
  const [title, setTitle] = useState(appointment?.title ?? "Visit");
  const [at, setAt] = useState(localTime(appointment === undefined ? Date.now() : Date.parse(appointment.startAt)));
  return (
    <Modal title={appointment === undefined ? "New appointment" : "Move the appointment"} onClose={onClose}>
      <Form submit="Save" onSubmit={() => onSave(title, new Date(at))}>
        <div className={`row ${style.large}`}>
          {usualTimes(new Date()).map(([text, time]) => (
            <Button key={text} onClick={() => onSave(title, time)}>
              {text}
            </Button>
          ))}
        </div>
        <Field label="Title">
          <Input
            required
            maxLength={limits.appointmentTitle}
            value={title}
            onChange={({ target }) => setTitle(target.value)}
          />
        </Field>
        <Field label="Another time" hint="In the time zone of this device">
          <Input type="datetime-local" required value={at} onChange={({ target }) => setAt(target.value)} />
        </Field>
      </Form>
    </Modal>
  );
}

const weekday = new Intl.DateTimeFormat(undefined, { weekday: "short" });
const hour = new Intl.DateTimeFormat(undefined, { hour: "numeric" });
/** Hours at which people are usually at home. */
const HOURS = [10, 15, 18];

/** Returns the times at `HOURS` of today, tomorrow and next Saturday, without past times. Each has a text such as `Today 3 PM`. */
export function usualTimes(now: Date): [text: string, time: Date][] {
  const saturday = (6 - now.getDay() + 7) % 7;
  const days = [...new Set([0, 1, saturday < 2 ? saturday + 7 : saturday])];
  return days.flatMap((day) =>
    HOURS.flatMap((hours): [string, Date][] => {
      const time = new Date(now.getFullYear(), now.getMonth(), now.getDate() + day, hours);
      const name = day === 0 ? "Today" : day === 1 ? "Tomorrow" : weekday.format(time);
      return time > now ? [[`${name} ${hour.format(time)}`, time]] : [];
    }),
  );
}
