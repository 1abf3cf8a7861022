/** The webhooks of the company, and a form for another one. */
import type { Webhook } from "canvassing-client/api";
import { useState } from "react";
import { Link } from "wouter";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Page } from "../ui/page.tsx";
import { Answer, Empty } from "../ui/states.tsx";
import { dateText } from "../ui/text.ts";
import { NewWebhookDialog } from "./new-webhook.tsx";
import { useWebhooks } from "./queries.ts";
import style from "./webhooks.module.css";

const columns: readonly Column<Webhook>[] = [
  {
    id: "name",
    header: "Name",
    cell: ({ id, name }) => (
      <Link className={style.name ?? ""} href={`/webhooks/${id}`}>
        {name}
      </Link>
    ),
  },
  { id: "url", header: "URL", cell: ({ url }) => <code className={style.url}>{url}</code> },
  {
    id: "state",
    header: "State",
    cell: ({ status }) => <Badge kind={status === "active" ? "good" : "warn"}>{status}</Badge>,
  },
  {
    id: "events",
    header: "Events",
    minor: true,
    cell: ({ registrations }) => [...new Set(registrations.map(({ event }) => event))].join(", "),
  },
  { id: "created", header: "Created", minor: true, cell: ({ createdAt }) => dateText(createdAt) },
];

export function WebhooksPage() {
  const query = useWebhooks();
  const [isOpen, setOpen] = useState(false);
  return (
    <Page
      title="Webhooks"
      lead="Signed messages to other systems when something happens."
      actions={
        <Button kind="main" onClick={() => setOpen(true)}>
          New webhook
        </Button>
      }
    >
      <Answer query={query} what="the webhooks">
        {(webhooks) =>
          webhooks.length === 0 ? (
            <Empty title="There are no webhooks yet">Create one to tell another system about changes.</Empty>
          ) : (
            <DataTable label="Webhooks" columns={columns} rows={webhooks} rowKey={({ id }) => id} />
          )
        }
      </Answer>
      {isOpen && <NewWebhookDialog onClose={() => setOpen(false)} />}
    </Page>
  );
}
