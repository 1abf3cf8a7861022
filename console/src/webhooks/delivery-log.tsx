/** The deliveries of a webhook, the newest first. */
import type { Delivery } from "canvassing-client/api";
import { useMemo, useState } from "react";
import { Badge, type BadgeKinds } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Select } from "../ui/field.tsx";
import { Panel } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
import { timeText } from "../ui/text.ts";
import { Time } from "../ui/time.tsx";
import { DeliveryDialog } from "./delivery-dialog.tsx";
import { attemptsText } from "./delivery-state.ts";
import { type DeliveryStatus, deliveryStatuses, useDeliveries, useRedeliver } from "./queries.ts";

const kinds: BadgeKinds = { waiting: "warn", delivered: "good", exhausted: "bad", cancelled: "plain" };
const labelOf = (status: string): string => (status === "exhausted" ? "failed" : status);

export function DeliveryLog({ webhookId }: { webhookId: number }) {
  const [status, setStatus] = useState<DeliveryStatus>();
  const [open, setOpen] = useState<string>();
  const query = useDeliveries(webhookId, status);
  const { mutate: redeliver } = useRedeliver(webhookId);
  const columns = useMemo(() => columnsOf(setOpen, redeliver), [redeliver]);
  const rows = query.data?.pages.flatMap(({ items }) => items);
  return (
    <Panel
      title="Deliveries"
      actions={
        <Select
          aria-label="State of the deliveries"
          value={status ?? ""}
          none="All"
          options={deliveryStatuses.map((one) => [one, labelOf(one)])}
          onChange={({ target }) => setStatus(deliveryStatuses.find((one) => one === target.value))}
        />
      }
    >
      <Answer query={{ data: rows, error: query.error, refetch: query.refetch }} what="the deliveries">
        {(shown) => (
          <DataTable
            label="Deliveries"
            columns={columns}
            rows={shown}
            empty={<p>There are no such deliveries in the last 30 days.</p>}
          />
        )}
      </Answer>
      {query.hasNextPage && <Button onClick={() => void query.fetchNextPage()}>Show more</Button>}
      {open !== undefined && (
        <DeliveryDialog webhookId={webhookId} deliveryId={open} onClose={() => setOpen(undefined)} />
      )}
    </Panel>
  );
}

const again = (status: string): string => (status === "waiting" ? "Send now" : "Send again");

const columnsOf = (open: (id: string) => void, redeliver: (id: string) => void): readonly Column<Delivery>[] => [
  {
    id: "created",
    header: "Event at",
    cell: ({ createdAt }) => <Time iso={createdAt} />,
  },
  { id: "event", header: "Event", cell: ({ event }) => event },
  {
    id: "status",
    header: "State",
    cell: (delivery) => (
      <span>
        <Badge kind={kinds[delivery.status]}>{labelOf(delivery.status)}</Badge>{" "}
        <span className="muted">{attemptsText(delivery, Date.now())}</span>
      </span>
    ),
  },
  {
    id: "actions",
    header: "Actions",
    isQuiet: true,
    align: "right",
    cell: ({ id, event, createdAt, status }) => (
      <span className="whole">
        <Button
          kind="quiet"
          aria-label={`${again(status)}: ${event} of ${timeText(createdAt)}`}
          onClick={() => redeliver(id)}
        >
          {again(status)}
        </Button>
        <Button kind="quiet" aria-label={`Details of ${event} of ${timeText(createdAt)}`} onClick={() => open(id)}>
          Details
        </Button>
      </span>
    ),
  },
];
