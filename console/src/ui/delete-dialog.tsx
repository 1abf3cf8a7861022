/** A dialog that asks before a record is deleted. */
import type { ReactNode } from "react";
import { type DialogProps, FormDialog } from "./form.tsx";

interface DeleteProps extends Pick<DialogProps, "request"> {
  /** For example `webhook`. */
  readonly what: string;
  readonly name: string;
  readonly onClose: () => void;
  /** The text that says what the deletion means. */
  readonly children: ReactNode;
}

export function DeleteDialog({ what, name, request, onClose, children }: DeleteProps) {
  return (
    <FormDialog title={`Delete ${name}?`} submit={`Delete the ${what}`} danger request={request} onClose={onClose}>
      <p>{children}</p>
    </FormDialog>
  );
}
