/**
 * A dialog made of the browser's element `dialog`. The browser keeps the focus inside it and closes it on Escape. When it closes, the focus
 * returns to the element that had it before.
 */
import { type ReactNode, type SyntheticEvent, useEffect, useId, useRef } from "react";
import { Button } from "./button.tsx";
import { useFocusReturn } from "./focus.ts";
import { Icon } from "./icon.tsx";
import style from "./modal.module.css";
import { coverPage, NoticeList } from "./notices.tsx";

export interface ModalProps {
  readonly title: string;
  /** Undefined if only a button among the children closes the dialog. Escape then does not close it. */
  readonly onClose: (() => void) | undefined;
  /** True if the dialog is a sheet at the side of a wide screen, so that the user still sees the rest of the page. */
  readonly isAside?: boolean;
  readonly children: ReactNode;
}

export function Modal({ title, onClose, isAside = false, children }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useFocusReturn(dialog, { open: (element) => element.showModal(), close: (element) => element.close() });
  useEffect(coverPage, []);
  // When the user presses Escape for the second time, Chrome closes a dialog even if its event `cancel` was prevented. Preventing the event
  // `keydown` stops this.
  const isLocked = onClose === undefined;
  useEffect(() => {
    if (!isLocked) return;
    const ignoreEscape = (event: KeyboardEvent): void => {
      if (event.key === "Escape") event.preventDefault();
    };
    document.addEventListener("keydown", ignoreEscape);
    return () => document.removeEventListener("keydown", ignoreEscape);
  }, [isLocked]);
  const stay = (event: SyntheticEvent): void => event.preventDefault();
  return (
    <dialog ref={dialog} className={style.modal} data-aside={isAside} aria-labelledby={id} onCancel={onClose ?? stay}>
      <header className={`${style.head} row between`}>
        <h2 id={id}>{title}</h2>
        {onClose !== undefined && (
          <Button kind="quiet" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </Button>
        )}
      </header>
      {children}
      <NoticeList />
    </dialog>
  );
}
