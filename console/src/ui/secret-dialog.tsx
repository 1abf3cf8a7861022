/** A dialog with a form whose answer contains a secret. The service returns the secret only once, so the dialog then shows it. */
import { useEffect, useRef, useState } from "react";
import { useWithoutBack } from "./back.ts";
import { Button } from "./button.tsx";
import { type DialogProps, FormDialog } from "./form.tsx";
import { Modal } from "./modal.tsx";
import { notifyDone, notifyFailed } from "./notices.tsx";

interface SecretProps extends DialogProps {
  /** Undefined until the service has answered. */
  readonly secret: string | undefined;
  readonly secretTitle: string;
  /** For example `key`. */
  readonly what: string;
  /** A sentence: who uses the secret. */
  readonly use: string;
  /** Called when the user says that the secret is stored. */
  readonly onStored: () => void;
}

/**
 * While the request runs, the user cannot leave the dialog, because the secret is in the answer. When the secret is shown, Escape, the
 * browser's Back and the button in the corner only ask whether it is stored. The browser also asks before it leaves or reloads the page.
 */
export function SecretDialog({ secret, secretTitle, what, use, onStored, ...form }: SecretProps) {
  const [isAsking, setAsking] = useState(false);
  const section = useRef<HTMLDivElement>(null);
  const { isPending } = form.request;
  const isShown = secret !== undefined;
  const ask = (): void => setAsking(isShown);
  useWithoutBack(isPending || isShown, ask);
  useEffect(() => {
    if (!isShown) return;
    // The section with the secret gets the focus, because the button that had it has disappeared.
    section.current?.focus();
    const stay = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", stay);
    return () => removeEventListener("beforeunload", stay);
  }, [isShown]);
  if (!isShown) return <FormDialog {...form} onClose={isPending ? undefined : form.onClose} />;
  const copy = () =>
    navigator.clipboard.writeText(secret).then(() => notifyDone(`The ${what} is in the clipboard.`), notifyFailed);
  return (
    <Modal title={secretTitle} onClose={ask}>
      <div ref={section} className="stack inside" tabIndex={-1}>
        <p>{use} It cannot be shown again, so store it before you close this dialog.</p>
        <pre className="box typed">{secret}</pre>
        {isAsking && <p role="alert">Have you stored the {what}? Without it, you have to make a new one.</p>}
        <div className="row">
          {/* Browsers have a clipboard only for pages that came over HTTPS or from this computer. */}
          {isSecureContext && <Button onClick={() => void copy()}>Copy the {what}</Button>}
          <Button kind="main" onClick={onStored}>
            I have stored it
          </Button>
        </div>
      </div>
    </Modal>
  );
}
