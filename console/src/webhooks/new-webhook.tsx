/** A dialog that creates a webhook, and then shows its secret once. */
import { useLocation } from "wouter";
import * as limits from "../../../shared/limits.ts";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { useDraft } from "../drafts/draft.tsx";
import { Checks, Field, Input } from "../ui/field.tsx";
import { SecretDialog } from "../ui/secret-dialog.tsx";
import { useEventTypes } from "./queries.ts";

/** Maximum characters of the chosen events in the draft. The list of all events has fewer. */
const LIST = 2_000;

export const secretTexts = { what: "secret", use: "Receivers check the signature with this secret." } as const;

export function NewWebhookDialog({ onClose }: { onClose: () => void }) {
  const types = useEventTypes().data ?? [];
  const [, open] = useLocation();
  const draft = useDraft(
    { record: "webhook:new", title: "New webhook", path: "/webhooks" },
    { name: ["", limits.name], url: ["", limits.url], events: ["prospect.status_changed", LIST] },
  );
  const [name, url] = [draft.text("name"), draft.text("url")];
  const events = draft
    .text("events")
    .split(",")
    .filter((event) => event !== "");
  const create = useChange({
    run: () =>
      answer(api.POST("/api/webhooks", { body: { name, url, registrations: events.map((event) => ({ event })) } })),
    stale: ["webhooks"],
    onDone: () => draft.discard(),
  });
  return (
    <SecretDialog
      {...secretTexts}
      secretTitle="The webhook is created"
      secret={create.data?.secretKey}
      onStored={() => open(`/webhooks/${create.data?.id}`)}
      title="New webhook"
      submit="Create the webhook"
      request={create}
      draft={draft}
      onClose={onClose}
    >
      <Field label="Name" name="name">
        <Input required {...draft.control("name")} />
      </Field>
      <Field
        label="URL"
        name="url"
        hint="It receives a POST request for each event. Only https is allowed in a deployment."
      >
        <Input type="url" required {...draft.control("url")} />
      </Field>
      <Checks
        label="Events"
        options={types.map(({ event, description }) => [event, event, description])}
        chosen={events}
        onChange={(chosen) => draft.change("events", chosen.join())}
      />
    </SecretDialog>
  );
}
