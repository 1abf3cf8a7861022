/**
 * A dialog made of the browser's element `dialog`. The browser keeps the focus inside the dialog. When the dialog closes, the focus returns
 * to the element that had it before.
 */
import { type ReactNode, type SyntheticEvent, useEffect, useId, useRef } from "react";
import { Button } from "./button.tsx";
import { useFocusReturn } from "./focus.ts";
import { Icon } from "./icon.tsx";
import style from "./modal.module.css";
import { coverPage, NoticeList } from "./notices.tsx";

export interface ModalProps {
  readonly title: string;
  /** Called when the user presses Escape or the button in the corner. Undefined while nothing may close the dialog. */
  readonly onClose: (() => void) | undefined;
  /** True if the dialog is a sheet at the side of a wide screen, so that the user still sees the rest of the page. */
  readonly isAside?: boolean | undefined;
  readonly children: ReactNode;
}

export function Modal({ title, onClose, isAside = false, children }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useFocusReturn(dialog, { open: (element) => element.showModal(), close: (element) => element.close() });
  useEffect(coverPage, []);
  const cancel = (event: SyntheticEvent): void => {
    event.preventDefault();
    onClose?.();
  };
  // At the second Escape, and at the second Back of a phone, Chrome closes a dialog without the event `cancel`. Open the dialog again,
  // because only the caller of this component decides when it closes.
  const reopen = ({ currentTarget }: SyntheticEvent<HTMLDialogElement>): void => {
    if (currentTarget.open || !currentTarget.isConnected) return;
    currentTarget.showModal();
    onClose?.();
  };
  return (
    <dialog
      ref={dialog}
      className={style.modal}
      data-aside={isAside}
      aria-labelledby={id}
      onCancel={cancel}
      onClose={reopen}
    >
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
