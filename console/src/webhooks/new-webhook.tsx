/** A dialog that creates a webhook, and then shows its secret once. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { answer, api } from "../api/client.ts";
import { Button } from "../ui/button.tsx";
import { Field, Input } from "../ui/field.tsx";
import { Form, Modal } from "../ui/modal.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { useEventTypes } from "./queries.ts";
import style from "./webhooks.module.css";

export function NewWebhookDialog({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const types = useEventTypes().data ?? [];
  const [, open] = useLocation();
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState<readonly string[]>(["prospect.status_changed"]);
  const create = useMutation({
    mutationFn: () =>
      answer(api.POST("/api/webhooks", { body: { name, url, registrations: events.map((event) => ({ event })) } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["webhooks"] }),
    onError: notifyFailed,
  });
  if (create.data !== undefined) {
    const { id, secretKey } = create.data;
    return (
      <Modal title="The webhook is created" onClose={onClose}>
        <Secret secret={secretKey}>
          <Button kind="main" onClick={() => open(`/webhooks/${id}`)}>
            Open the webhook
          </Button>
        </Secret>
      </Modal>
    );
  }
  return (
    <Modal title="New webhook" onClose={onClose}>
      <Form submit="Create the webhook" isBusy={create.isPending} onSubmit={() => create.mutate()}>
        <Field label="Name">
          <Input required value={name} onChange={({ target }) => setName(target.value)} />
        </Field>
        <Field label="URL" hint="It receives a POST request for each event. Only https is allowed in a deployment.">
          <Input type="url" required value={url} onChange={({ target }) => setUrl(target.value)} />
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
                  setEvents(target.checked ? [...others, event] : others);
                }}
              />
              {event}
            </label>
          ))}
        </fieldset>
      </Form>
    </Modal>
  );
}

export function Secret({ secret, children }: { secret: string; children?: ReactNode }) {
  return (
    <div className={style.body}>
      <p>Receivers check the signature with this secret. It is shown only now.</p>
      <pre className={style.code}>{secret}</pre>
      <div className={style.bar}>
        <Button onClick={() => void navigator.clipboard.writeText(secret)}>Copy the secret</Button>
        {children}
      </div>
    </div>
  );
}
