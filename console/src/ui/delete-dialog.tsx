/** A dialog that asks before a record is deleted. */
import type { ReactNode } from "react";
import { FormDialog } from "./form.tsx";

interface DeleteProps {
  /** For example `webhook`. */
  readonly what: string;
  readonly name: string;
  readonly request: { readonly isPending: boolean; readonly error: Error | null; readonly mutate: () => void };
  readonly onClose: () => void;
  /** What the deletion means. */
  readonly children: ReactNode;
}

export function DeleteDialog({ what, name, request, onClose, children }: DeleteProps) {
  return (
    <FormDialog
      title={`Delete ${name}?`}
      submit={`Delete the ${what}`}
      danger
      request={request}
      onSubmit={() => request.mutate()}
      onClose={onClose}
    >
      <p>{children}</p>
    </FormDialog>
  );
}
