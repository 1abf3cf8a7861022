/** A dialog that invites a user, or changes one. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { User } from "canvassing-client/api";
import * as limits from "../../../shared/limits.ts";
import { answer, api } from "../api/client.ts";
import { nameOf } from "../api/reference.ts";
import { DraftNote, useDraft } from "../drafts/draft.tsx";
import { Field, Fields, Input, Select } from "../ui/field.tsx";
import { Form } from "../ui/form.tsx";
import { Modal } from "../ui/modal.tsx";
import { notifyDone } from "../ui/notices.tsx";
import style from "./form.module.css";
import { permissionLabels, permissions, roleLabels, roles } from "./labels.ts";

/** More than the characters of a role, of the list of all permissions, and of `true` and `false`. */
const CHOICE = 200;

export function UserForm({ user, onClose }: { user: User | undefined; onClose: () => void }) {
  const queries = useQueryClient();
  const draft = useDraft(
    {
      record: `user:${user?.id ?? "new"}`,
      title: user === undefined ? "Invitation of a user" : `User ${nameOf(user)}`,
      path: "/users",
    },
    {
      email: [user?.email ?? "", limits.email],
      firstName: [user?.firstName ?? "", limits.name],
      lastName: [user?.lastName ?? "", limits.name],
      role: [user?.role ?? "sales", CHOICE],
      permissions: [(user?.permissions ?? []).join(), CHOICE],
      isActive: [String(user?.isActive ?? true), CHOICE],
    },
  );
  const role = roles.find((one) => one === draft.text("role")) ?? "sales";
  const chosen = draft.text("permissions").split(",");
  const isActive = draft.text("isActive") === "true";
  const save = useMutation({
    mutationFn: () => {
      const body = {
        firstName: draft.text("firstName"),
        lastName: draft.text("lastName"),
        role,
        permissions: permissions.filter((permission) => chosen.includes(permission)),
      };
      if (user === undefined) return answer(api.POST("/api/users", { body: { ...body, email: draft.text("email") } }));
      return answer(api.PATCH("/api/users/{id}", { params: { path: { id: user.id } }, body: { ...body, isActive } }));
    },
    onSuccess: async () => {
      draft.discard();
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
            <Input required {...draft.control("firstName")} />
          </Field>
          <Field label="Last name" name="lastName">
            <Input required {...draft.control("lastName")} />
          </Field>
        </Fields>
        <Field label="E-mail" name="email">
          <Input type="email" required disabled={user !== undefined} {...draft.control("email")} />
        </Field>
        <Field label="Role" name="role">
          <Select {...draft.control("role")}>
            {roles.map((one) => (
              <option key={one} value={one}>
                {roleLabels[one]}
              </option>
            ))}
          </Select>
        </Field>
        {role === "sales" && (
          <fieldset className={style.permissions}>
            <legend>Permissions</legend>
            {permissions.map((permission) => (
              <label key={permission}>
                <input
                  type="checkbox"
                  checked={chosen.includes(permission)}
                  onChange={({ target }) =>
                    draft.change(
                      "permissions",
                      permissions.filter((one) => (one === permission ? target.checked : chosen.includes(one))).join(),
                    )
                  }
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
              checked={isActive}
              onChange={({ target }) => draft.change("isActive", String(target.checked))}
            />
            May sign in
          </label>
        )}
        <DraftNote draft={draft} />
      </Form>
    </Modal>
  );
}
