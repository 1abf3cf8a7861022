/** One door in the sheet: its status as buttons, a note, and what else the rep can do there. */
import type { Status, Tag } from "canvassing-client/api";
import { useEffect, useRef, useState } from "react";
import * as limits from "../../../shared/limits.ts";
import { NOTE } from "../api/notes.ts";
import { DraftNote, useDraft } from "../drafts/draft.tsx";
import { Badge, StatusMark } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Field, TextArea } from "../ui/field.tsx";
import { timeText } from "../ui/text.ts";
import { Appointments } from "./appointments.tsx";
import { metresBetween, type Position } from "./distance.ts";
import { type Door, titleOf } from "./door.ts";
import style from "./field.module.css";

/** Number of statuses that have a button at first. The other statuses appear after a tap on “More …”. */
const FIRST_STATUSES = 8;
/**
 * Milliseconds for which a door that has just appeared ignores taps on its statuses, because the second tap of a double tap was meant for
 * the previous door.
 */
const SETTLED_MS = 400;

interface DoorProps {
  readonly door: Door;
  readonly statuses: readonly Status[];
  readonly tags: readonly Tag[];
  readonly me: Position | undefined;
  /** Resolves when this device has stored the status. */
  readonly onStatus: (status: Status) => Promise<unknown>;
  readonly onNote: (body: string) => void;
  readonly onNext: () => void;
  readonly onEdit: () => void;
}

/** Returns the name under which drafts of a door are stored. The name stays the same when the service creates the prospect. */
export const recordOf = ({ id, clientRecordId }: Pick<Door, "id" | "clientRecordId">): string =>
  `prospect:${clientRecordId ?? id}`;

export function DoorView({ door, statuses, tags, me, onStatus, onNote, onNext, onEdit }: DoorProps) {
  const { name, address, status, position, phoneNumber, emailAddress } = door;
  const active = statuses.filter(({ isActive }) => isActive);
  const [hasMore, setMore] = useState(false);
  const [isSettled, setSettled] = useState(false);
  const isStoring = useRef(false);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // If an element of the previous door had the focus, the focus is gone with it. The heading of this door then gets the focus.
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
    const timer = setTimeout(() => setSettled(true), SETTLED_MS);
    return () => clearTimeout(timer);
  }, []);
  const press = async (chosen: Status): Promise<void> => {
    if (isStoring.current) return;
    isStoring.current = true;
    await onStatus(chosen);
    isStoring.current = false;
  };
  const shown = hasMore ? active : active.slice(0, FIRST_STATUSES);
  const distance = me === undefined || position === undefined ? "" : ` · ${metresText(metresBetween(me, position))}`;
  const tagNames = door.tags.flatMap((id) => tags.find((tag) => tag.id === id)?.value ?? []);
  return (
    <>
      <header className={style.head}>
        <div>
          <h2 ref={heading} tabIndex={-1}>
            {titleOf(door)}
          </h2>
          <p>
            {address !== null && name !== null && <span>{name} · </span>}
            <StatusMark status={status} />
            {distance} {door.pending.length > 0 && <Badge kind="warn">not sent yet</Badge>}
          </p>
        </div>
        <Button onClick={onNext}>Next door</Button>
      </header>
      <fieldset className={style.statuses} aria-label="Status" disabled={!isSettled}>
        {shown.map((one) => (
          <button key={one.id} type="button" aria-pressed={one.id === status?.id} onClick={() => void press(one)}>
            <span style={{ background: one.color }} aria-hidden="true" />
            {one.value}
          </button>
        ))}
        {!hasMore && active.length > FIRST_STATUSES && (
          <button type="button" onClick={() => setMore(true)}>
            More …
          </button>
        )}
      </fieldset>
      <nav className={`row ${style.links}`} aria-label="Contact">
        {phoneNumber !== null && <a href={`tel:${phoneNumber}`}>Call</a>}
        {phoneNumber !== null && <a href={`sms:${phoneNumber}`}>Text</a>}
        {emailAddress !== null && <a href={`mailto:${emailAddress}`}>E-mail</a>}
        {position !== undefined && (
          <a href={directionsTo(position)} target="_blank" rel="noreferrer">
            Directions
          </a>
        )}
        <button type="button" onClick={onEdit}>
          Edit
        </button>
      </nav>
      <NewNote door={door} onNote={onNote} />
      <Appointments door={door} />
      {tagNames.length > 0 && <p>Tags: {tagNames.join(", ")}</p>}
      <ol className="stack tight list" aria-label="Notes">
        {door.notes.map(({ key, body, at }) => (
          <li key={key}>
            <p className="typed">{body}</p>
            <small>{timeText(at)}</small>
          </li>
        ))}
      </ol>
    </>
  );
}

function NewNote({ door, onNote }: Pick<DoorProps, "door" | "onNote">) {
  const place = {
    record: recordOf(door),
    title: `Note for ${titleOf(door)}`,
    path: `/field?door=${encodeURIComponent(door.key)}`,
  };
  const draft = useDraft(place, { [NOTE]: ["", limits.note] });
  const text = draft.text(NOTE).trim();
  return (
    <div className={`stack tight ${style.large} ${style.note}`}>
      <Field label="New note">
        <TextArea rows={2} {...draft.control(NOTE)} />
      </Field>
      <Button
        disabled={text === ""}
        onClick={() => {
          onNote(text);
          draft.discard();
        }}
      >
        Add note
      </Button>
      <DraftNote draft={draft} />
    </div>
  );
}

/** Returns the URL of the directions to a door in Google Maps. */
const directionsTo = ([lng, lat]: Position): string =>
  `https://www.google.com/maps/dir/?api=1&destination=${lat},${lng}`;

const FEET_PER_METRE = 3.280_84;
const FEET_PER_MILE = 5_280;

function metresText(metres: number): string {
  const feet = metres * FEET_PER_METRE;
  return feet < 1_000 ? `${Math.round(feet / 10) * 10} ft` : `${(feet / FEET_PER_MILE).toFixed(1)} mi`;
}
