/** A dialog that registers a webhook for an event, with conditions on the event's data. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "../api/client.ts";
import { Button } from "../ui/button.tsx";
import { Field, Fields, Input, Select } from "../ui/field.tsx";
import { Form, Modal } from "../ui/modal.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { useEventTypes } from "./queries.ts";
import style from "./webhooks.module.css";

interface Condition {
  readonly path: string;
  readonly value: string;
}

/** Numbers, true, false and null are themselves; anything else is text. A comma makes a list of which any may match. */
function valueIn(text: string): unknown {
  const parts = text.split(",").map((part) => scalar(part.trim()));
  return parts.length === 1 ? parts[0] : parts;
}

function scalar(text: string): unknown {
  if (text === "null") return null;
  if (text === "true" || text === "false") return text === "true";
  return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

export function RegistrationForm({ webhookId, onClose }: { webhookId: number; onClose: () => void }) {
  const queries = useQueryClient();
  const types = useEventTypes().data ?? [];
  const [event, setEvent] = useState("prospect.status_changed");
  const [conditions, setConditions] = useState<readonly Condition[]>([]);
  const [delay, setDelay] = useState("0");
  const [button, setButton] = useState("");
  const filter = Object.fromEntries(
    conditions.filter(({ path }) => path.trim() !== "").map(({ path, value }) => [path.trim(), valueIn(value)]),
  );
  const create = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/webhooks/{id}/registrations", {
          params: { path: { id: webhookId } },
          body: {
            event,
            filter: Object.keys(filter).length === 0 ? null : filter,
            delayMinutes: Number(delay),
            ...(button !== "" && { triggerMode: "manual" as const, manualTriggerButtonText: button }),
          },
        }),
      ),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["webhooks"] });
      onClose();
    },
    onError: notifyFailed,
  });
  const change = (index: number, changes: Partial<Condition>) =>
    setConditions(conditions.map((one, i) => (i === index ? { ...one, ...changes } : one)));
  return (
    <Modal title="Add a registration" onClose={onClose}>
      <Form submit="Add" isBusy={create.isPending} onSubmit={() => create.mutate()}>
        <Field label="Event" hint={types.find((type) => type.event === event)?.description}>
          <Select value={event} onChange={({ target }) => setEvent(target.value)}>
            {types.map((type) => (
              <option key={type.event}>{type.event}</option>
            ))}
          </Select>
        </Field>
        {conditions.map(({ path, value }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: conditions have no identity of their own
          <div className={style.row} key={index}>
            <Field label="Field">
              <Input
                value={path}
                placeholder="newStatus.value"
                onChange={({ target }) => change(index, { path: target.value })}
              />
            </Field>
            <Field label="is">
              <Input
                value={value}
                placeholder="Sold"
                onChange={({ target }) => change(index, { value: target.value })}
              />
            </Field>
            <Button
              kind="quiet"
              aria-label="Remove the condition"
              onClick={() => setConditions(conditions.filter((_, i) => i !== index))}
            >
              Remove
            </Button>
          </div>
        ))}
        <div className={style.bar}>
          <Button onClick={() => setConditions([...conditions, { path: "", value: "" }])}>Add a condition</Button>
          {conditions.length > 0 && <code className={style.url}>{JSON.stringify(filter)}</code>}
        </div>
        <Fields>
          <Field label="Delay in minutes" hint="Events of one record within the delay are sent together.">
            <Input
              type="number"
              min="0"
              max="43200"
              required
              value={delay}
              onChange={({ target }) => setDelay(target.value)}
            />
          </Field>
          <Field label="Button" hint="With a text, nothing is sent until a rep presses the button.">
            <Input value={button} onChange={({ target }) => setButton(target.value)} />
          </Field>
        </Fields>
      </Form>
    </Modal>
  );
}
