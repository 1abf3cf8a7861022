/** The table of a webhook's registrations, and the dialog that adds or changes one: an event, and conditions on the event's data. */
import type { Registration, Webhook } from "canvassing-client/api";
import { useMemo, useState } from "react";
import * as limits from "../../../shared/limits.ts";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { useDraft } from "../drafts/draft.tsx";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { DeleteDialog } from "../ui/delete-dialog.tsx";
import { Field, Fields, Input, Select } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { Panel } from "../ui/page.tsx";
import { amount } from "../ui/text.ts";
import { type Built, type Condition, conditionsIn, conditionsOf, conditionsText, filterOf } from "./conditions.ts";
import { FilterBuilder, FilterPreview } from "./filter-builder.tsx";
import { useDeleteRegistration, useEventTypes } from "./queries.ts";
import style from "./webhooks.module.css";

type Dialog =
  | { readonly kind: "form"; readonly registration: Registration | undefined }
  | { readonly kind: "delete"; readonly registration: Registration };

export function Registrations({ webhook: { id, registrations } }: { webhook: Webhook }) {
  const [dialog, setDialog] = useState<Dialog>();
  const close = () => setDialog(undefined);
  const columns = useMemo(() => columnsOf(setDialog), []);
  return (
    <Panel
      title="Registrations"
      actions={<Button onClick={() => setDialog({ kind: "form", registration: undefined })}>Add a registration</Button>}
    >
      <DataTable
        label="Registrations"
        columns={columns}
        rows={registrations}
        empty={<p>The webhook receives nothing, because it is registered for no event.</p>}
      />
      {dialog?.kind === "form" && (
        <RegistrationForm webhookId={id} registration={dialog.registration} onClose={close} />
      )}
      {dialog?.kind === "delete" && (
        <DeleteRegistration webhookId={id} registration={dialog.registration} onClose={close} />
      )}
    </Panel>
  );
}

interface DeleteProps {
  readonly webhookId: number;
  readonly registration: Registration;
  readonly onClose: () => void;
}

function DeleteRegistration({ webhookId, registration: { id, event }, onClose }: DeleteProps) {
  const remove = useDeleteRegistration(webhookId, id, onClose);
  return (
    <DeleteDialog what="registration" name={`the registration for ${event}`} request={remove} onClose={onClose}>
      The webhook no longer receives these events. What waits to be sent for this registration is cancelled.
    </DeleteDialog>
  );
}

const columnsOf = (open: (dialog: Dialog) => void): readonly Column<Registration>[] => [
  {
    id: "event",
    header: "Event",
    cell: ({ event, warnings = [] }) => (
      <>
        {event}
        {warnings.map((warning) => (
          <p key={warning} className={style.warning}>
            {warning}
          </p>
        ))}
      </>
    ),
  },
  {
    id: "filter",
    header: "Filter",
    cell: ({ filter }) => (filter === null ? "all" : <code className="broken">{JSON.stringify(filter)}</code>),
  },
  {
    id: "delay",
    header: "Delay",
    minor: true,
    cell: ({ delayMinutes }) => (delayMinutes === 0 ? "none" : amount(delayMinutes, "minute")),
  },
  {
    id: "trigger",
    header: "Sent",
    minor: true,
    cell: ({ triggerMode, manualTriggerButtonText }) =>
      triggerMode === "automatic" ? "by itself" : `by the button “${manualTriggerButtonText ?? ""}”`,
  },
  {
    id: "actions",
    header: "Actions",
    isQuiet: true,
    align: "right",
    cell: (registration) => (
      <span className="whole">
        <Button
          kind="quiet"
          aria-label={`Edit the registration for ${registration.event}`}
          onClick={() => open({ kind: "form", registration })}
        >
          Edit
        </Button>
        <Button
          kind="quiet"
          aria-label={`Delete the registration for ${registration.event}`}
          onClick={() => open({ kind: "delete", registration })}
        >
          Delete
        </Button>
      </span>
    ),
  },
];

/** The draft has this text instead of conditions if the form cannot show the filter as conditions. */
const FIXED = "fixed";
/** Maximum characters of all conditions in the draft. */
const CONDITIONS = 10_000;

interface FormProps {
  readonly webhookId: number;
  /** Undefined for a new registration. */
  readonly registration: Registration | undefined;
  readonly onClose: () => void;
}

function RegistrationForm({ webhookId, registration, onClose }: FormProps) {
  const types = useEventTypes().data ?? [];
  const before = conditionsOf(registration?.filter ?? null);
  const draft = useDraft(
    {
      record: registration === undefined ? `webhook:${webhookId}` : `registration:${registration.id}`,
      title: registration === undefined ? "New registration" : `Registration for ${registration.event}`,
      path: `/webhooks/${webhookId}`,
    },
    {
      event: [registration?.event ?? "prospect.status_changed", limits.name],
      conditions: [before === undefined ? FIXED : conditionsText(before), CONDITIONS],
      delayMinutes: [String(registration?.delayMinutes ?? 0), limits.name],
      button: [registration?.manualTriggerButtonText ?? "", limits.name],
    },
  );
  const [event, delay, button] = [draft.text("event"), draft.text("delayMinutes"), draft.text("button")];
  const typed = draft.text("conditions");
  const conditions = typed === FIXED ? undefined : conditionsIn(typed);
  const setConditions = (changed: readonly Condition[]) => draft.change("conditions", conditionsText(changed));
  const save = useSave(webhookId, registration?.id, () => {
    draft.discard();
    onClose();
  });
  // If the form cannot show the filter as conditions, the filter stays as it is.
  const built =
    conditions === undefined ? { filter: registration?.filter ?? null, fault: undefined } : filterOf(conditions);
  return (
    <FormDialog
      title={registration === undefined ? "Add a registration" : "Edit the registration"}
      submit={registration === undefined ? "Add" : "Save"}
      request={{ ...save, mutate: () => save.mutate({ event, built, delayMinutes: Number(delay), button }) }}
      draft={draft}
      onClose={onClose}
    >
      {registration !== undefined && <p>What already waits to be sent keeps its time and its content.</p>}
      <Field label="Event" name="event" hint={types.find((type) => type.event === event)?.description}>
        <Select options={types.map((type) => [type.event, type.event])} {...draft.control("event")} />
      </Field>
      {conditions === undefined ? (
        <FixedFilter filter={built.filter} onReplace={() => setConditions([])} />
      ) : (
        <FilterBuilder event={event} conditions={conditions} onChange={setConditions} built={built} />
      )}
      <FilterPreview webhookId={webhookId} event={event} filter={built.filter} />
      <Fields>
        <Field
          label="Delay in minutes"
          name="delayMinutes"
          hint="Events of one record within the delay are sent together."
        >
          <Input type="number" min="0" max="43200" required {...draft.control("delayMinutes")} />
        </Field>
        <Field
          label="Button"
          name="manualTriggerButtonText"
          hint="With a text, nothing is sent until a rep presses the button."
        >
          <Input {...draft.control("button")} />
        </Field>
      </Fields>
    </FormDialog>
  );
}

function FixedFilter({ filter, onReplace }: { filter: Built["filter"]; onReplace: () => void }) {
  return (
    <>
      <p>This form cannot show the filter, which was made with the API. The filter stays as it is.</p>
      <div className="row">
        <Button onClick={onReplace}>Replace the filter</Button>
        <code className="broken">{JSON.stringify(filter)}</code>
      </div>
    </>
  );
}

interface Typed {
  readonly event: string;
  readonly built: Built;
  readonly delayMinutes: number;
  readonly button: string;
}

const useSave = (id: number, registrationId: number | undefined, onSaved: () => void) =>
  useChange({
    run: ({ event, built: { filter, fault }, delayMinutes, button }: Typed) => {
      if (fault !== undefined) return Promise.reject(new Error(fault));
      const trigger =
        button === ""
          ? { triggerMode: "automatic" as const, manualTriggerButtonText: null }
          : { triggerMode: "manual" as const, manualTriggerButtonText: button };
      const body = { event, filter, delayMinutes, ...trigger };
      if (registrationId === undefined) {
        return answer(api.POST("/api/webhooks/{id}/registrations", { params: { path: { id } }, body }));
      }
      const path = { id, registrationId };
      return answer(api.PATCH("/api/webhooks/{id}/registrations/{registrationId}", { params: { path }, body }));
    },
    stale: ["webhooks"],
    onDone: onSaved,
  });
