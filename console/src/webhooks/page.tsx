/** The page with the webhooks of the company. */
import type { Webhook } from "canvassing-client/api";
import { useState } from "react";
import { Link } from "wouter";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Page } from "../ui/page.tsx";
import { Answer, Empty } from "../ui/states.tsx";
import { Time } from "../ui/time.tsx";
import { NewWebhookDialog } from "./new-webhook.tsx";
import { useWebhooks } from "./queries.ts";

const columns: readonly Column<Webhook>[] = [
  {
    id: "name",
    header: "Name",
    cell: ({ id, name }) => (
      <Link className="open" href={`/webhooks/${id}`}>
        {name}
      </Link>
    ),
  },
  { id: "url", header: "URL", cell: ({ url }) => <code className="broken">{url}</code> },
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
  { id: "created", header: "Created", minor: true, cell: ({ createdAt }) => <Time iso={createdAt} /> },
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
        {(webhooks) => (
          <DataTable
            label="Webhooks"
            columns={columns}
            rows={webhooks}
            empty={<Empty title="There are no webhooks yet">Create one to tell another system about changes.</Empty>}
          />
        )}
      </Answer>
      {isOpen && <NewWebhookDialog onClose={() => setOpen(false)} />}
    </Page>
  );
}
