/** Short messages that tell the user what an action did. A screen reader reads them aloud. */
import { type ReactNode, useSyncExternalStore } from "react";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";
import style from "./notices.module.css";

interface Notice {
  readonly id: number;
  readonly kind: "done" | "failed" | "task";
  readonly text: ReactNode;
}

const SHOWN_MS = 8_000;
/** Milliseconds in which the user can undo a change. */
const UNDO_MS = 10_000;
/** Maximum number of messages, because more would cover the page. */
const MOST = 3;

let notices: readonly Notice[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function replace(next: readonly Notice[]): void {
  notices = next;
  for (const listener of listeners) listener();
}

export const dismiss = (id: number): void => replace(notices.filter((notice) => notice.id !== id));

function show(kind: Notice["kind"], text: ReactNode, shownMs = SHOWN_MS): number {
  lastId += 1;
  const id = lastId;
  replace([...notices, { id, kind, text }].slice(-MOST));
  if (kind === "done") setTimeout(() => dismiss(id), shownMs);
  return id;
}

export function notifyDone(text: ReactNode): void {
  show("done", text);
}

/** Shows what has changed, and for ten seconds a button that undoes it. Returns the id of the message for `dismiss`. */
export function notifyUndo(text: string, undo: () => void): number {
  const press = (): void => {
    dismiss(id);
    undo();
  };
  const notice = (
    <>
      {text}{" "}
      <Button kind="quiet" onClick={press}>
        Undo
      </Button>
    </>
  );
  const id = show("done", notice, UNDO_MS);
  return id;
}

/** Shows an error. The message stays until the user closes it or newer messages displace it. Returns its id for `dismiss`. */
export const notifyFailed = (error: Error): number => show("failed", error.message);

/**
 * Shows the progress of an action that takes some time. The message stays until the user closes it or newer messages displace it. Returns
 * the id of the message for `dismiss`. The element must keep no state of its own, because it is made again when a dialog opens or closes.
 */
export const notifyTask = (task: ReactNode): number => show("task", task);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let openDialogs = 0;

/**
 * Call this when a modal dialog opens. Browsers do not let users reach the page behind such a dialog, so `Notices` shows nothing, and the
 * dialog shows the messages instead. Returns a function to call when the dialog has closed.
 */
export function coverPage(): () => void {
  const count = (change: number): void => {
    openDialogs += change;
    replace(notices);
  };
  count(1);
  return () => count(-1);
}

/**
 * The messages of the page. While a dialog is open, the list is empty but is not removed: a screen reader reads a new message only if it is
 * added to a list that already exists.
 */
export function Notices() {
  const isCovered = useSyncExternalStore(subscribe, () => openDialogs > 0);
  return <NoticeList isCovered={isCovered} />;
}

export function NoticeList({ isCovered = false }: { isCovered?: boolean }) {
  const all = useSyncExternalStore(subscribe, () => notices);
  const shown = isCovered ? [] : all;
  // Screen readers read errors at once, and other messages when they have finished what they are reading.
  return (
    <div className={style.notices}>
      <div className={style.list} role="alert">
        {shown.filter(({ kind }) => kind === "failed").map(noticeElement)}
      </div>
      <div className={style.list} role="status">
        {shown.filter(({ kind }) => kind !== "failed").map(noticeElement)}
      </div>
    </div>
  );
}

const noticeElement = ({ id, kind, text }: Notice) => (
  <div key={id} className={style.notice} data-kind={kind}>
    <div>{text}</div>
    <Button kind="quiet" aria-label="Close this message" onClick={() => dismiss(id)}>
      <Icon name="close" size={16} />
    </Button>
  </div>
);
