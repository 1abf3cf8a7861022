/** The table of a webhook's registrations. */
import type { Registration, Webhook } from "canvassing-client/api";
import { useMemo, useState } from "react";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { DeleteDialog } from "../ui/delete-dialog.tsx";
import { Panel } from "../ui/page.tsx";
import { amount } from "../ui/text.ts";
import { useDeleteRegistration } from "./queries.ts";
import { RegistrationForm } from "./registration-form.tsx";
import style from "./webhooks.module.css";

type Dialog =
  | { readonly kind: "form"; readonly registration: Registration | undefined }
  | { readonly kind: "delete"; readonly registration: Registration };

export function Registrations({ webhook: { id, registrations } }: { webhook: Webhook }) {
  const [dialog, setDialog] = useState<Dialog>();
  const close = () => setDialog(undefined);
  const columns = useMemo(() => columnsOf(setDialog), []);
  return (
    <Panel
      title="Registrations"
      actions={<Button onClick={() => setDialog({ kind: "form", registration: undefined })}>Add a registration</Button>}
    >
      <DataTable
        label="Registrations"
        columns={columns}
        rows={registrations}
        empty={<p>The webhook receives nothing, because it is registered for no event.</p>}
      />
      {dialog?.kind === "form" && (
        <RegistrationForm webhookId={id} registration={dialog.registration} onClose={close} />
      )}
      {dialog?.kind === "delete" && (
        <DeleteRegistration webhookId={id} registration={dialog.registration} onClose={close} />
      )}
    </Panel>
  );
}

interface DeleteProps {
  readonly webhookId: number;
  readonly registration: Registration;
  readonly onClose: () => void;
}

function DeleteRegistration({ webhookId, registration: { id, event }, onClose }: DeleteProps) {
  const remove = useDeleteRegistration(webhookId, id, onClose);
  return (
    <DeleteDialog what="registration" name={`the registration for ${event}`} request={remove} onClose={onClose}>
      The webhook no longer receives these events. What waits to be sent for this registration is cancelled.
    </DeleteDialog>
  );
}

const columnsOf = (open: (dialog: Dialog) => void): readonly Column<Registration>[] => [
  {
    id: "event",
    header: "Event",
    cell: ({ event, warnings = [] }) => (
      <>
        {event}
        {warnings.map((warning) => (
          <p key={warning} className={style.warning}>
            {warning}
          </p>
        ))}
      </>
    ),
  },
  {
    id: "filter",
    header: "Filter",
    cell: ({ filter }) => (filter === null ? "all" : <code className="broken">{JSON.stringify(filter)}</code>),
  },
  {
    id: "delay",
    header: "Delay",
    minor: true,
    cell: ({ delayMinutes }) => (delayMinutes === 0 ? "none" : amount(delayMinutes, "minute")),
  },
  {
    id: "trigger",
    header: "Sent",
    minor: true,
    cell: ({ triggerMode, manualTriggerButtonText }) =>
      triggerMode === "automatic" ? "by itself" : `by the button “${manualTriggerButtonText ?? ""}”`,
  },
  {
    id: "actions",
    header: "Actions",
    isQuiet: true,
    align: "right",
    cell: (registration) => (
      <span className="whole">
        <Button
          kind="quiet"
          aria-label={`Edit the registration for ${registration.event}`}
          onClick={() => open({ kind: "form", registration })}
        >
          Edit
        </Button>
        <Button
          kind="quiet"
          aria-label={`Delete the registration for ${registration.event}`}
          onClick={() => open({ kind: "delete", registration })}
        >
          Delete
        </Button>
      </span>
    ),
  },
];
