/** A form with one button that sends it. If the request fails, the form says why, and marks the fields that are wrong. */
import { type ComponentProps, createContext, type ReactNode, useId, useState } from "react";
import { RequestFailed } from "../api/client.ts";
import { FieldError, type FieldFault } from "../api/faults.ts";
import { DraftNote } from "../drafts/draft.tsx";
import { Button } from "./button.tsx";
import style from "./form.module.css";
import { Modal, type ModalProps } from "./modal.tsx";

interface FormFaults {
  readonly faults: readonly FieldFault[];
  /** The id of the text that describes the faults. */
  readonly textId: string;
  /** The labels of the fields that are on the page, by the names of the fields. The fields write their labels into this map. */
  readonly labels: Map<string, string>;
}

export const FormContext = createContext<FormFaults | undefined>(undefined);

interface FormProps {
  readonly onSubmit: () => void;
  readonly submit: string;
  readonly isBusy?: boolean;
  readonly danger?: boolean;
  /** Why the last attempt has failed. */
  readonly error?: Error | null | undefined;
  readonly children: ReactNode;
}

export function Form({ onSubmit, submit, isBusy = false, danger = false, error = null, children }: FormProps) {
  const [labels] = useState(() => new Map<string, string>());
  const textId = useId();
  const faults = error instanceof RequestFailed || error instanceof FieldError ? error.faults : [];
  return (
    <form
      className="stack inside"
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      <FormContext value={{ faults, textId, labels }}>{children}</FormContext>
      {error !== null && (
        <div id={textId} className={style.error} role="alert">
          {faults.length === 0 ? (
            <p>{error.message}</p>
          ) : (
            faults.map(({ field, text }) => (
              <p key={`${field} ${text}`}>{withLabel(labels.get(field) ?? field, text)}</p>
            ))
          )}
        </div>
      )}
      <footer className="row end">
        <Button kind={danger ? "danger" : "main"} type="submit" disabled={isBusy}>
          {submit}
        </Button>
      </footer>
    </form>
  );
}

const withLabel = (label: string, text: string): string => (label === "" ? text : `${label}: ${text}`);

export interface DialogProps
  extends Omit<FormProps, "isBusy" | "error" | "onSubmit">,
    Pick<ModalProps, "title" | "onClose" | "isAside"> {
  /** The request that the form sends. */
  readonly request: { readonly isPending: boolean; readonly error: Error | null; readonly mutate: () => void };
  /** The drafts of the fields. */
  readonly draft?: ComponentProps<typeof DraftNote>["draft"];
  /** False while a choice of the user is missing. The button of the form is then disabled. */
  readonly isReady?: boolean;
}

/** A dialog with a form. */
export function FormDialog({ title, onClose, isAside, request, isReady = true, draft, ...form }: DialogProps) {
  const { isPending, error, mutate } = request;
  return (
    <Modal title={title} onClose={onClose} isAside={isAside}>
      <Form isBusy={isPending || !isReady} error={error} onSubmit={() => mutate()} {...form}>
        {form.children}
        {draft !== undefined && <DraftNote draft={draft} />}
      </Form>
    </Modal>
  );
}
