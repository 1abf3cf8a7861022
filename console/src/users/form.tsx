/** A dialog that invites a user, or changes one. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Permission, Role, User } from "canvassing-client/api";
import { useState } from "react";
import { answer, api } from "../api/client.ts";
import { Field, Fields, Input, Select } from "../ui/field.tsx";
import { Form } from "../ui/form.tsx";
import { Modal } from "../ui/modal.tsx";
import { notifyDone } from "../ui/notices.tsx";
import style from "./form.module.css";
import { permissionLabels, permissions, roleLabels, roles } from "./labels.ts";

interface Draft {
  readonly email: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly role: Role;
  readonly permissions: readonly Permission[];
  readonly isActive: boolean;
}

const nobody: Draft = { email: "", firstName: "", lastName: "", role: "sales", permissions: [], isActive: true };

export function UserForm({ user, onClose }: { user: User | undefined; onClose: () => void }) {
  const queries = useQueryClient();
  const [draft, setDraft] = useState<Draft>(user ?? nobody);
  const change = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes });
  const save = useMutation({
    mutationFn: () => {
      const { firstName, lastName, role, email, isActive } = draft;
      const body = { firstName, lastName, role, permissions: [...draft.permissions] };
      if (user === undefined) return answer(api.POST("/api/users", { body: { ...body, email } }));
      return answer(api.PATCH("/api/users/{id}", { params: { path: { id: user.id } }, body: { ...body, isActive } }));
    },
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["users"] });
      notifyDone(user === undefined ? "The user is invited." : "The user is saved.");
      onClose();
    },
  });
  return (
    <Modal title={user === undefined ? "Invite a user" : "Edit the user"} onClose={onClose}>
      <Form
        submit={user === undefined ? "Send the invitation" : "Save"}
        isBusy={save.isPending}
        error={save.error}
        onSubmit={() => save.mutate()}
      >
        <Fields>
          <Field label="First name" name="firstName">
            <Input required value={draft.firstName} onChange={({ target }) => change({ firstName: target.value })} />
          </Field>
          <Field label="Last name" name="lastName">
            <Input value={draft.lastName} onChange={({ target }) => change({ lastName: target.value })} />
          </Field>
        </Fields>
        <Field label="E-mail" name="email">
          <Input
            type="email"
            required
            disabled={user !== undefined}
            value={draft.email}
            onChange={({ target }) => change({ email: target.value })}
          />
        </Field>
        <Field label="Role" name="role">
          <Select
            value={draft.role}
            onChange={({ target }) => change({ role: roles.find((one) => one === target.value) ?? "sales" })}
          >
            {roles.map((role) => (
              <option key={role} value={role}>
                {roleLabels[role]}
              </option>
            ))}
          </Select>
        </Field>
        {draft.role === "sales" && (
          <fieldset className={style.permissions}>
            <legend>Permissions</legend>
            {permissions.map((permission) => (
              <label key={permission}>
                <input
                  type="checkbox"
                  checked={draft.permissions.includes(permission)}
                  onChange={({ target }) => {
                    const others = draft.permissions.filter((one) => one !== permission);
                    change({ permissions: target.checked ? [...others, permission] : others });
                  }}
                />
                {permissionLabels[permission]}
              </label>
            ))}
          </fieldset>
        )}
        {user !== undefined && (
          <label className={style.active}>
            <input
              type="checkbox"
              checked={draft.isActive}
              onChange={({ target }) => change({ isActive: target.checked })}
            />
            May sign in
          </label>
        )}
      </Form>
    </Modal>
  );
}
