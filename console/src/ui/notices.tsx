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
/** Maximum number of messages, because more would cover the page. */
const MOST = 3;

let notices: readonly Notice[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function replace(next: readonly Notice[]): void {
  notices = next;
  for (const listener of listeners) listener();
}

const dismiss = (id: number): void => replace(notices.filter((notice) => notice.id !== id));

function show(kind: Notice["kind"], text: ReactNode): void {
  lastId += 1;
  const id = lastId;
  replace([...notices, { id, kind, text }].slice(-MOST));
  if (kind === "done") setTimeout(() => dismiss(id), SHOWN_MS);
}

export const notifyDone = (text: ReactNode): void => show("done", text);
/** Shows an error. The message stays until the user closes it or newer messages displace it. */
export const notifyFailed = (error: Error): void => show("failed", error.message);

/** Shows the progress of an action that takes some time. The message stays until the user closes it or newer messages displace it. */
export const notifyTask = (task: ReactNode): void => show("task", task);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function Notices() {
  const shown = useSyncExternalStore(subscribe, () => notices);
  return (
    <div className={style.notices} role="status">
      {shown.map(({ id, kind, text }) => (
        <div key={id} className={style.notice} data-kind={kind}>
          <div>{text}</div>
          <Button kind="quiet" aria-label="Close this message" onClick={() => dismiss(id)}>
            <Icon name="close" size={16} />
          </Button>
        </div>
      ))}
    </div>
  );
}
