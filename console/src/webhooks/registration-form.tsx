/** A dialog that registers a webhook for an event, with conditions on the event's data. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "../api/client.ts";
import { Field, Fields, Input, Select } from "../ui/field.tsx";
import { Form, Modal } from "../ui/modal.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { type Condition, filterOf } from "./conditions.ts";
import { FilterBuilder, FilterPreview } from "./filter-builder.tsx";
import { useEventTypes } from "./queries.ts";

export function RegistrationForm({ webhookId, onClose }: { webhookId: number; onClose: () => void }) {
  const queries = useQueryClient();
  const types = useEventTypes().data ?? [];
  const [event, setEvent] = useState("prospect.status_changed");
  const [conditions, setConditions] = useState<readonly Condition[]>([]);
  const [delay, setDelay] = useState("0");
  const [button, setButton] = useState("");
  const built = filterOf(conditions);
  const create = useMutation({
    mutationFn: () =>
      answer(
        api.POST("/api/webhooks/{id}/registrations", {
          params: { path: { id: webhookId } },
          body: {
            event,
            filter: built.filter,
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
  const submit = () => (built.fault === undefined ? create.mutate() : notifyFailed(new Error(built.fault)));
  return (
    <Modal title="Add a registration" onClose={onClose}>
      <Form submit="Add" isBusy={create.isPending} onSubmit={submit}>
        <Field label="Event" hint={types.find((type) => type.event === event)?.description}>
          <Select value={event} onChange={({ target }) => setEvent(target.value)}>
            {types.map((type) => (
              <option key={type.event}>{type.event}</option>
            ))}
          </Select>
        </Field>
        <FilterBuilder event={event} conditions={conditions} onChange={setConditions} built={built} />
        <FilterPreview webhookId={webhookId} event={event} filter={built.filter} />
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
