/** A dialog with the fields of a territory. The user can type the corners of the polygon, so that drawing with a mouse is not necessary. */
import { useState } from "react";
import { FieldError } from "../api/faults.ts";
import { useUserOptions } from "../api/reference.ts";
import { DraftNote } from "../drafts/draft.tsx";
import { Field, Input, Select, TextArea } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { POLYGON, ringOf, textOf } from "./corners.ts";
import { type Edited, useSave, useTerritoryDraft } from "./edits.ts";

interface FormProps {
  readonly edited: Edited;
  readonly onClose: () => void;
}

export function TerritoryForm({ edited, onClose }: FormProps) {
  const territory = typeof edited === "string" ? undefined : edited;
  const users = useUserOptions(territory?.assignedToUserId ?? undefined);
  const draft = useTerritoryDraft(edited);
  const [name, assignee, corners] = [draft.text("name"), draft.text("assignedToUserId"), draft.text(POLYGON)];
  const save = useSave(territory?.id, () => {
    draft.discard();
    onClose();
  });
  const [fault, setFault] = useState<FieldError>();
  const submit = () => {
    const polygon = ringOf(corners);
    setFault(polygon instanceof FieldError ? polygon : undefined);
    if (polygon instanceof FieldError) return;
    // If the user has not changed the polygon, it is not sent. Its stored coordinates then stay exactly the same.
    const changed = territory === undefined || corners !== textOf(territory.polygon);
    save.mutate({
      ...(name.trim() !== "" && { name: name.trim() }),
      assignedToUserId: assignee === "" ? null : Number(assignee),
      ...(changed && polygon.length > 0 && { polygon }),
    });
  };
  return (
    <FormDialog
      title={territory === undefined ? "New territory" : "Edit the territory"}
      submit="Save"
      request={{ isPending: save.isPending, error: fault ?? save.error }}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Name" name="name">
        <Input placeholder="Untitled Territory" {...draft.control("name")} />
      </Field>
      <Field label="Assigned to" name="assignedToUserId" hint="This does not change the prospects inside.">
        <Select none="Nobody" options={users} {...draft.control("assignedToUserId")} />
      </Field>
      <Field label="Corners" name={POLYGON} hint="One corner a line: longitude, latitude. At least three.">
        <TextArea rows={6} {...draft.control(POLYGON)} />
      </Field>
      <DraftNote draft={draft} />
    </FormDialog>
  );
}
