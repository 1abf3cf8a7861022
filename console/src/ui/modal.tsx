/**
 * A dialog made of the browser's element `dialog`. The browser keeps the focus inside it, closes it on Escape, and returns the focus to the
 * element that had it before.
 */
import { type ReactNode, useEffect, useId, useRef } from "react";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";
import style from "./modal.module.css";

export function Modal({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog ref={dialog} className={style.modal} aria-labelledby={id} onCancel={onClose}>
      <header className={style.head}>
        <h2 id={id}>{title}</h2>
        <Button kind="quiet" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </header>
      {children}
    </dialog>
  );
}

/** A form with one button that sends it. */
export function Form(props: {
  onSubmit: () => void;
  submit: string;
  isBusy?: boolean;
  danger?: boolean;
  children: ReactNode;
}) {
  const { onSubmit, submit, isBusy = false, danger = false, children } = props;
  return (
    <form
      className={style.form}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      {children}
      <footer className={style.foot}>
        <Button kind={danger ? "danger" : "main"} type="submit" disabled={isBusy}>
          {submit}
        </Button>
      </footer>
    </form>
  );
}
