/** The doors that need a visit today: those with an appointment, and those whose status means that the rep comes back. */
import { Modal } from "../ui/modal.tsx";
import { timeText } from "../ui/text.ts";
import { metresBetween, type Position } from "./distance.ts";
import { type Door, titleOf } from "./door.ts";
import style from "./field.module.css";

/** A status that contains one of these words means that the rep comes back. Its text is searched, because no field of it says this. */
const GO_BACK = /\b(back|return|follow|later|call)\b/i;
const MOST = 200;

export interface DoorsProps {
  readonly doors: readonly Door[];
  /** The position of the rep. If it is not known, the position of the open door. */
  readonly from: Position | undefined;
  readonly onOpen: (door: Door) => void;
  readonly onClose: () => void;
}

export function Today({ doors, from, onOpen, onClose }: DoorsProps) {
  const visits = visitsOf(doors, new Date());
  const goBacks = nearestFirst(
    doors.filter(({ status }) => status !== null && GO_BACK.test(status.value)),
    from,
  );
  return (
    <Modal title="Today" onClose={onClose}>
      <div className={`stack tight inside ${style.large}`}>
        <h3>Appointments</h3>
        {visits.length === 0 && <p>There is no appointment today.</p>}
        <ul className={`stack tight list ${style.choices}`}>
          {visits.map(({ door, key, startAt, title }) => (
            <li key={key}>
              <button type="button" onClick={() => onOpen(door)}>
                {timeText(startAt)}: {title}, {titleOf(door)}
              </button>
            </li>
          ))}
        </ul>
        <h3>Go back, the nearest first</h3>
        {goBacks.length === 0 && <p>No door has a status such as Go Back.</p>}
        <DoorList doors={goBacks} onOpen={onOpen} />
      </div>
    </Modal>
  );
}

export function nearestFirst(doors: readonly Door[], from: Position | undefined): readonly Door[] {
  if (from === undefined) return doors;
  const metres = ({ position }: Door) => (position === undefined ? Number.MAX_VALUE : metresBetween(from, position));
  return doors.toSorted((a, b) => metres(a) - metres(b));
}

/** Returns the scheduled appointments on the day of `now`, the earliest first. */
export function visitsOf(doors: readonly Door[], now: Date) {
  const day = now.toDateString();
  return doors
    .flatMap((door) => door.appointments.map((appointment) => ({ ...appointment, door })))
    .filter(({ status, startAt }) => status === "scheduled" && new Date(startAt).toDateString() === day)
    .sort((a, b) => (a.startAt < b.startAt ? -1 : 1));
}

export function DoorList({ doors, onOpen }: Pick<DoorsProps, "doors" | "onOpen">) {
  return (
    <ul className={`stack tight list ${style.choices}`}>
      {doors.slice(0, MOST).map((door) => (
        <li key={door.key}>
          <button type="button" onClick={() => onOpen(door)}>
            {titleOf(door)}
            {door.name !== null && door.address !== null && <small>{door.name}</small>}
            <small>{door.status?.value ?? "No status"}</small>
          </button>
        </li>
      ))}
      {doors.length > MOST && <li>and {doors.length - MOST} more</li>}
    </ul>
  );
}
