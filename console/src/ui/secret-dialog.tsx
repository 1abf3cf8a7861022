/** A dialog that shows a secret which the service returns only once. */
import { useEffect, useRef } from "react";
import { Button } from "./button.tsx";
import { Modal } from "./modal.tsx";
import { notifyDone, notifyFailed } from "./notices.tsx";

interface SecretProps {
  readonly title: string;
  /** For example `key`. */
  readonly what: string;
  readonly secret: string;
  /** A sentence: who uses the secret. */
  readonly use: string;
  /** The text of the button that closes the dialog. Nothing else closes it, and the browser asks before it leaves or reloads the page. */
  readonly close?: string;
  readonly onClose: () => void;
}

export function SecretDialog({ title, what, secret, use, close = "I have stored it", onClose }: SecretProps) {
  const copy = () =>
    navigator.clipboard.writeText(secret).then(() => notifyDone(`The ${what} is in the clipboard.`), notifyFailed);
  const section = useRef<HTMLDivElement>(null);
  // The button that had the focus has disappeared, so this section gets the focus.
  useEffect(() => section.current?.focus(), []);
  useEffect(() => {
    const ask = (event: BeforeUnloadEvent): void => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, []);
  return (
    <Modal title={title} onClose={undefined}>
      <div ref={section} className="stack inside" tabIndex={-1}>
        <p>{use} It cannot be shown again, so store it before you close this dialog.</p>
        <pre className="box typed">{secret}</pre>
        <div className="row">
          {/* Browsers have a clipboard only for pages that came over HTTPS or from this computer. */}
          {isSecureContext && <Button onClick={() => void copy()}>Copy the {what}</Button>}
          <Button kind="main" onClick={onClose}>
            {close}
          </Button>
        </div>
      </div>
    </Modal>
  );
}
