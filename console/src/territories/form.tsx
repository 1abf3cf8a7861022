/** A dialog with the fields of a territory. The user can type the corners of the polygon, so that drawing with a mouse is not necessary. */
import type { Territory } from "canvassing-client/api";
import { useState } from "react";
import { FieldError } from "../api/faults.ts";
import { nameOf, useUsers } from "../api/reference.ts";
import { Field, Input, Select, TextArea } from "../ui/field.tsx";
import { Form } from "../ui/form.tsx";
import { Modal } from "../ui/modal.tsx";
import { POLYGON, ringOf, textOf } from "./corners.ts";
import { useSave } from "./queries.ts";

interface FormProps {
  /** Undefined for a new territory. */
  readonly territory: Territory | undefined;
  readonly ring: readonly number[][];
  readonly onClose: () => void;
}

export function TerritoryForm({ territory, ring, onClose }: FormProps) {
  const users = useUsers().data ?? [];
  const [name, setName] = useState(territory?.name ?? "");
  const [assignee, setAssignee] = useState(String(territory?.assignedToUserId ?? ""));
  const before = textOf(ring);
  const [corners, setCorners] = useState(before);
  const save = useSave(territory?.id, onClose);
  const [fault, setFault] = useState<FieldError>();
  const submit = () => {
    const polygon = ringOf(corners);
    setFault(polygon instanceof FieldError ? polygon : undefined);
    if (polygon instanceof FieldError) return;
    // If the user has not changed the polygon, it is not sent. Its stored coordinates then stay exactly the same.
    const changed = territory === undefined || corners !== before;
    save.mutate({
      ...(name.trim() !== "" && { name: name.trim() }),
      assignedToUserId: assignee === "" ? null : Number(assignee),
      ...(changed && polygon.length > 0 && { polygon }),
    });
  };
  return (
    <Modal title={territory === undefined ? "New territory" : "Edit the territory"} onClose={onClose}>
      <Form submit="Save" isBusy={save.isPending} error={fault ?? save.error} onSubmit={submit}>
        <Field label="Name" name="name">
          <Input value={name} placeholder="Untitled Territory" onChange={({ target }) => setName(target.value)} />
        </Field>
        <Field label="Assigned to" name="assignedToUserId" hint="This does not change the prospects inside.">
          <Select value={assignee} onChange={({ target }) => setAssignee(target.value)}>
            <option value="">Nobody</option>
            {users.map((user) => (
              <option key={user.id} value={user.id}>
                {nameOf(user)}
              </option>
            ))}
          </Select>
        </Field>
        <Field label="Corners" name={POLYGON} hint="One corner a line: longitude, latitude. At least three.">
          <TextArea rows={6} value={corners} onChange={({ target }) => setCorners(target.value)} />
        </Field>
      </Form>
    </Modal>
  );
}
