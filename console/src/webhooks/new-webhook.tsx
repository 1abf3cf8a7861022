/** A dialog that creates a webhook, and then shows its secret once. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef } from "react";
import { useLocation } from "wouter";
import * as limits from "../../../shared/limits.ts";
import { answer, api } from "../api/client.ts";
import { DraftNote, useDraft } from "../drafts/draft.tsx";
import { Button } from "../ui/button.tsx";
import { Field, Input } from "../ui/field.tsx";
import { Form } from "../ui/form.tsx";
import { Modal } from "../ui/modal.tsx";
import { notifyDone, notifyFailed } from "../ui/notices.tsx";
import { useEventTypes } from "./queries.ts";
import style from "./webhooks.module.css";

/** More than the characters of the list of all events. */
const LIST = 2_000;

export function NewWebhookDialog({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
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
  const create = useMutation({
    mutationFn: () =>
      answer(api.POST("/api/webhooks", { body: { name, url, registrations: events.map((event) => ({ event })) } })),
    onSuccess: () => {
      draft.discard();
      return queries.invalidateQueries({ queryKey: ["webhooks"] });
    },
  });
  if (create.data !== undefined) {
    const { id, secretKey } = create.data;
    return (
      <Modal title="The webhook is created" onClose={undefined}>
        <Secret secret={secretKey}>
          <Button kind="main" onClick={() => open(`/webhooks/${id}`)}>
            Open the webhook
          </Button>
        </Secret>
      </Modal>
    );
  }
  return (
    // While the request runs, the user cannot close the dialog. Otherwise the user would never see the secret, which is in the answer.
    <Modal title="New webhook" onClose={create.isPending ? undefined : onClose}>
      <Form submit="Create the webhook" isBusy={create.isPending} error={create.error} onSubmit={() => create.mutate()}>
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
        <fieldset className={style.events}>
          <legend>Events</legend>
          {types.map(({ event, description }) => (
            <label key={event} title={description}>
              <input
                type="checkbox"
                checked={events.includes(event)}
                onChange={({ target }) => {
                  const others = events.filter((one) => one !== event);
                  draft.change("events", (target.checked ? [...others, event] : others).join());
                }}
              />
              {event}
            </label>
          ))}
        </fieldset>
        <DraftNote draft={draft} />
      </Form>
    </Modal>
  );
}

/** Shows a secret that the service returns only once. The children are a button that closes the dialog. */
export function Secret({ secret, children }: { secret: string; children: ReactNode }) {
  const copy = () =>
    navigator.clipboard.writeText(secret).then(() => notifyDone("The secret is in the clipboard."), notifyFailed);
  const section = useRef<HTMLDivElement>(null);
  // The button that had the focus has disappeared, so this section gets the focus.
  useEffect(() => section.current?.focus(), []);
  return (
    <div ref={section} className={style.body} tabIndex={-1}>
      <p>
        Receivers check the signature with this secret. It is shown only now, so store it before you close this dialog.
      </p>
      <pre className={style.code}>{secret}</pre>
      <div className={style.bar}>
        {/* Browsers have a clipboard only for pages that came over HTTPS or from this computer. */}
        {isSecureContext && <Button onClick={() => void copy()}>Copy the secret</Button>}
        {children}
      </div>
    </div>
  );
}
