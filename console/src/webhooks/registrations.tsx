/** The table of a webhook's registrations. */
import type { Registration, Webhook } from "canvassing-client/api";
import { useMemo, useState } from "react";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Panel } from "../ui/page.tsx";
import { amount } from "../ui/text.ts";
import { useDeleteRegistration } from "./queries.ts";
import { RegistrationForm } from "./registration-form.tsx";
import style from "./webhooks.module.css";

export function Registrations({ webhook: { id, registrations } }: { webhook: Webhook }) {
  const [isOpen, setOpen] = useState(false);
  const { mutate: remove } = useDeleteRegistration(id);
  const columns = useMemo(() => columnsOf(remove), [remove]);
  return (
    <Panel title="Registrations" actions={<Button onClick={() => setOpen(true)}>Add a registration</Button>}>
      {registrations.length === 0 ? (
        <p>The webhook receives nothing, because it is registered for no event.</p>
      ) : (
        <DataTable label="Registrations" columns={columns} rows={registrations} rowKey={(one) => one.id} />
      )}
      {isOpen && <RegistrationForm webhookId={id} onClose={() => setOpen(false)} />}
    </Panel>
  );
}

const columnsOf = (remove: (id: number) => void): readonly Column<Registration>[] => [
  { id: "event", header: "Event", cell: ({ event }) => event },
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
    id: "delete",
    header: "Actions",
    isQuiet: true,
    align: "right",
    cell: ({ id, event }) => (
      <Button kind="quiet" aria-label={`Delete the registration for ${event}`} onClick={() => remove(id)}>
        Delete
      </Button>
    ),
  },
];
