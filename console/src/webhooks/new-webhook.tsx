/** A dialog that creates a webhook, and then shows its secret once. */
import { type ReactNode, useEffect, useRef } from "react";
import { useLocation } from "wouter";
import * as limits from "../../../shared/limits.ts";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { DraftNote, useDraft } from "../drafts/draft.tsx";
import { Button } from "../ui/button.tsx";
import { Checks, Field, Input } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { Modal } from "../ui/modal.tsx";
import { notifyDone, notifyFailed } from "../ui/notices.tsx";
import { useEventTypes } from "./queries.ts";
import style from "./webhooks.module.css";

/** More than the characters of the list of all events. */
const LIST = 2_000;

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
  if (create.data !== undefined) {
    const { id, secretKey } = create.data;
    return (
      <SecretDialog title="The webhook is created" secret={secretKey}>
        <Button kind="main" onClick={() => open(`/webhooks/${id}`)}>
          Open the webhook
        </Button>
      </SecretDialog>
    );
  }
  return (
    <FormDialog
      title="New webhook"
      submit="Create the webhook"
      request={create}
      onSubmit={() => create.mutate()}
      // While the request runs, the user cannot close the dialog. Otherwise the user would never see the secret, which is in the answer.
      onClose={create.isPending ? undefined : onClose}
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
      <DraftNote draft={draft} />
    </FormDialog>
  );
}

/** Shows a secret that the service returns only once. Only the button among the children closes the dialog. */
export function SecretDialog({ title, secret, children }: { title: string; secret: string; children: ReactNode }) {
  const copy = () =>
    navigator.clipboard.writeText(secret).then(() => notifyDone("The secret is in the clipboard."), notifyFailed);
  const section = useRef<HTMLDivElement>(null);
  // The button that had the focus has disappeared, so this section gets the focus.
  useEffect(() => section.current?.focus(), []);
  return (
    <Modal title={title} onClose={undefined}>
      <div ref={section} className="stack inside" tabIndex={-1}>
        <p>
          Receivers check the signature with this secret. It is shown only now, so store it before you close this
          dialog.
        </p>
        <pre className={style.code}>{secret}</pre>
        <div className="row">
          {/* Browsers have a clipboard only for pages that came over HTTPS or from this computer. */}
          {isSecureContext && <Button onClick={() => void copy()}>Copy the secret</Button>}
          {children}
        </div>
      </div>
    </Modal>
  );
}
