/** Shows which changes wait to be sent, when this device was last up to date, and about which changes the user has to decide. */
import type { Entry } from "canvassing-client/store";
import { useState } from "react";
import { signIn } from "../api/client.ts";
import { useOnline } from "../shell/connection.tsx";
import { Button } from "../ui/button.tsx";
import { Modal } from "../ui/modal.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { amount, timeText } from "../ui/text.ts";
import { titleOf } from "./door.ts";
import style from "./field.module.css";
import { type KeptStreets, useKeptStreets } from "./kept-streets.ts";
import { type Copy, useCopy, usePhone } from "./phone.ts";
import { StorageState } from "./storage.tsx";

export function Waiting() {
  const copy = useCopy();
  const streets = useKeptStreets();
  const [isOpen, setOpen] = useState(false);
  const isOnline = useOnline();
  const failed = copy.outbox.filter(({ state }) => state === "failed").length;
  return (
    <>
      <div role="status">
        <button type="button" className={style.state} data-failed={failed > 0} onClick={() => setOpen(true)}>
          {stateOf(copy, failed, isOnline)}
        </button>
      </div>
      {isOpen && <WaitingDialog copy={copy} streets={streets} onClose={() => setOpen(false)} />}
    </>
  );
}

function stateOf({ outbox, lastContactMs, outcome = "synced" }: Copy, failed: number, isOnline: boolean): string {
  const waiting = outbox.filter(({ state }) => state === "waiting").length;
  const waits = waiting > 0 && `${waiting} waiting`;
  if (outcome === "signed-out") return ["Signed out", waits].filter(Boolean).join(", ");
  if (failed > 0) return `${amount(failed, "change needs", "changes need")} your decision`;
  if (waiting > 0 || !isOnline) return [!isOnline && "Offline", waits].filter(Boolean).join(", ");
  if (outcome instanceof Error) return "Not up to date";
  if (lastContactMs === undefined) return "Downloading …";
  return outcome === "synced" ? "Up to date" : "No connection";
}

interface DialogProps {
  readonly copy: Copy;
  readonly streets: KeptStreets | undefined;
  readonly onClose: () => void;
}

function WaitingDialog({ copy, streets, onClose }: DialogProps) {
  const phone = usePhone();
  const isOnline = useOnline();
  const { outbox, outcome, lastContactMs, isSyncing, records } = copy;
  const left = outbox.filter(({ state }) => state !== "applied");
  return (
    <Modal title="Changes on this device" onClose={onClose}>
      <div className={`stack tight inside ${style.large}`}>
        <p>
          {lastContactMs === undefined
            ? `The first download has not ended: ${amount(records, "record")} so far.`
            : `This device last had everything on ${timeText(new Date(lastContactMs).toISOString())}.`}
        </p>
        {outcome === "signed-out" ? (
          <Button kind="main" onClick={() => void signIn()}>
            Sign in
          </Button>
        ) : (
          <Button disabled={isSyncing} onClick={() => void phone.sync().catch(notifyFailed)}>
            {isSyncing ? "Sending and loading …" : "Send and load now"}
          </Button>
        )}
        {left.length === 0 && <p>Nothing is waiting.</p>}
        <ul className="stack tight list">
          {left.map((entry) => (
            <EntryItem key={entry.opId} entry={entry} copy={copy} />
          ))}
        </ul>
        {/* What appears and disappears by itself is below the buttons, so that no button moves while the user presses it. */}
        {(outcome === "offline" || !isOnline) && (
          <p role="alert">
            {isOnline
              ? "The service did not answer the last attempt. It is tried again each minute."
              : "This device has no connection. It sends what waits when the connection is back."}
          </p>
        )}
        {outcome instanceof Error && <p role="alert">The last attempt has failed: {outcome.message}</p>}
        {outcome === "signed-out" && (
          <p role="alert">Your session has ended. What waits stays on this device until you sign in.</p>
        )}
        <StorageState waiting={left.length} streets={streets} />
      </div>
    </Modal>
  );
}

function EntryItem({ entry, copy }: { entry: Entry; copy: Copy }) {
  const phone = usePhone();
  const { state, result, record, operation } = entry;
  const door =
    copy.doors.get(record) ?? copy.list.find(({ pending }) => pending.some(({ opId }) => opId === entry.opId));
  const isConflict = result?.outcome === "conflict";
  return (
    <li>
      <strong>{door === undefined ? "A door that you no longer see" : titleOf(door)}</strong>
      <p>{wordsOf(entry, copy)}</p>
      {operation.occurredAt !== undefined && <small>{timeText(operation.occurredAt)}</small>}
      {state === "failed" && (
        <>
          <p role="alert">
            {isConflict
              ? `Somebody else has changed this meanwhile: ${differences(entry)}`
              : (result?.problem?.detail ?? "The service has refused this change.")}
          </p>
          <div className="row">
            <Button onClick={() => void phone.retry(entry).catch(notifyFailed)}>
              {isConflict ? "Use mine" : "Send again"}
            </Button>
            <Button onClick={() => void phone.discard(entry).catch(notifyFailed)}>
              {isConflict ? "Keep theirs" : "Give up"}
            </Button>
          </div>
        </>
      )}
    </li>
  );
}

/** Returns words for an operation in the outbox, for example `Status: Sold`. */
export function wordsOf({ operation: { type, fields = {} } }: Entry, { statuses }: Pick<Copy, "statuses">): string {
  const { currentStatusId, body, title, startAt } = fields;
  if (type === "prospect.create") return "New door";
  if (type === "prospect.delete") return "Deleted";
  if (type === "prospect.tags") return "Changed the tags";
  if (type === "note.create") return `Note: ${body}`;
  if (type === "appointment.create") return `Appointment: ${title}, ${timeText(`${startAt}`)}`;
  if (type === "appointment.update") return "Changed an appointment";
  if (currentStatusId === undefined) return `Changed ${Object.keys(fields).map(plain).join(", ")}`;
  return `Status: ${statuses.find(({ id }) => id === currentStatusId)?.value ?? "none"}`;
}

/** Returns one sentence with the present values of the record and the user's values, for the fields of a change that was refused. */
function differences({ operation: { fields = {} }, result }: Entry): string {
  const record = result?.record ?? {};
  const show = (value: unknown): string =>
    (typeof value === "object" && value !== null ? "another value" : `${value ?? ""}`) || "empty";
  const lines = Object.entries(fields).flatMap(([name, value]) =>
    name in record ? [`${plain(name)} is ${show(record[name])}, yours is ${show(value)}`] : [],
  );
  return `${lines.join("; ") || "another field"}.`;
}

/** `phoneNumber` becomes `phone number`. */
const plain = (name: string): string => name.replace(/([A-Z])/g, " $1").toLowerCase();
