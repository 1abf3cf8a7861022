/** The deliveries of a webhook, the newest first. */
import type { Delivery } from "canvassing-client/api";
import { useMemo, useState } from "react";
import { Badge, type BadgeKinds } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Select } from "../ui/field.tsx";
import { Panel } from "../ui/page.tsx";
import { Failure, Loading } from "../ui/states.tsx";
import { timeText } from "../ui/text.ts";
import { DeliveryDialog } from "./delivery-dialog.tsx";
import { type DeliveryStatus, deliveryStatuses, useDeliveries, useRedeliver } from "./queries.ts";
import style from "./webhooks.module.css";

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
          onChange={({ target }) => setStatus(deliveryStatuses.find((one) => one === target.value))}
        >
          <option value="">All</option>
          {deliveryStatuses.map((one) => (
            <option key={one} value={one}>
              {labelOf(one)}
            </option>
          ))}
        </Select>
      }
    >
      {rows === undefined && query.error === null && <Loading what="the deliveries" />}
      {rows === undefined && query.error !== null && <Failure what="the deliveries" error={query.error} />}
      {rows?.length === 0 && <p>There are no such deliveries in the last 30 days.</p>}
      {rows !== undefined && rows.length > 0 && (
        <DataTable label="Deliveries" columns={columns} rows={rows} rowKey={({ id }) => id} />
      )}
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
    cell: ({ createdAt }) => <span className={style.whole}>{timeText(createdAt)}</span>,
  },
  { id: "event", header: "Event", cell: ({ event }) => event },
  { id: "status", header: "State", cell: ({ status }) => <Badge kind={kinds[status]}>{labelOf(status)}</Badge> },
  { id: "attempts", header: "Attempts", align: "right", minor: true, cell: ({ attemptCount }) => attemptCount },
  {
    id: "next",
    header: "Next attempt",
    minor: true,
    cell: ({ nextAttemptAt, heldBy }) => {
      if (heldBy === "pause") return "when it is resumed";
      return nextAttemptAt === null ? "" : timeText(nextAttemptAt);
    },
  },
  {
    id: "actions",
    header: "Actions",
    isQuiet: true,
    align: "right",
    cell: ({ id, event, createdAt, status }) => (
      <span className={style.buttons}>
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
