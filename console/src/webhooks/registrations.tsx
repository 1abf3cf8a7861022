/** The table of a webhook's registrations. */
import type { Registration, Webhook } from "canvassing-client/api";
import { useMemo, useState } from "react";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Form } from "../ui/form.tsx";
import { Modal } from "../ui/modal.tsx";
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
      {registrations.length === 0 ? (
        <p>The webhook receives nothing, because it is registered for no event.</p>
      ) : (
        <DataTable label="Registrations" columns={columns} rows={registrations} rowKey={(one) => one.id} />
      )}
      {dialog?.kind === "form" && (
        <RegistrationForm webhookId={id} registration={dialog.registration} onClose={close} />
      )}
      {dialog?.kind === "delete" && <DeleteDialog webhookId={id} registration={dialog.registration} onClose={close} />}
    </Panel>
  );
}

interface DeleteProps {
  readonly webhookId: number;
  readonly registration: Registration;
  readonly onClose: () => void;
}

function DeleteDialog({ webhookId, registration: { id, event }, onClose }: DeleteProps) {
  const remove = useDeleteRegistration(webhookId);
  return (
    <Modal title={`Delete the registration for ${event}?`} onClose={onClose}>
      <Form
        submit="Delete the registration"
        danger
        isBusy={remove.isPending}
        error={remove.error}
        onSubmit={() => remove.mutate(id, { onSuccess: onClose })}
      >
        <p>The webhook no longer receives these events. What waits to be sent for this registration is cancelled.</p>
      </Form>
    </Modal>
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
    cell: ({ filter }) => (filter === null ? "all" : <code className={style.url}>{JSON.stringify(filter)}</code>),
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
      <span className={style.buttons}>
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
