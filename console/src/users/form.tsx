/** A dialog that invites a user, or changes one. */
import type { User } from "canvassing-client/api";
import * as limits from "../../../shared/limits.ts";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { nameOf } from "../api/reference.ts";
import { DraftNote, useDraft } from "../drafts/draft.tsx";
import { Checks, Field, Fields, Input, Select } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { notifyDone } from "../ui/notices.tsx";
import { permissions, roles } from "./labels.ts";

/** More than the characters of a role, of the list of all permissions, and of `true` and `false`. */
const CHOICE = 200;

export function UserForm({ user, onClose }: { user: User | undefined; onClose: () => void }) {
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
  const [role] = roles.find(([one]) => one === draft.text("role")) ?? roles[0];
  const chosen = draft.text("permissions").split(",");
  const isActive = draft.text("isActive") === "true";
  const save = useChange({
    run: () => {
      const body = {
        firstName: draft.text("firstName"),
        lastName: draft.text("lastName"),
        role,
        permissions: permissions.flatMap(([permission]) => (chosen.includes(permission) ? [permission] : [])),
      };
      if (user === undefined) return answer(api.POST("/api/users", { body: { ...body, email: draft.text("email") } }));
      return answer(api.PATCH("/api/users/{id}", { params: { path: { id: user.id } }, body: { ...body, isActive } }));
    },
    stale: ["users"],
    onDone: () => {
      draft.discard();
      notifyDone(user === undefined ? "The user is invited." : "The user is saved.");
      onClose();
    },
  });
  return (
    <FormDialog
      title={user === undefined ? "Invite a user" : "Edit the user"}
      submit={user === undefined ? "Send the invitation" : "Save"}
      request={save}
      onSubmit={() => save.mutate()}
      onClose={onClose}
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
        <Select options={roles} {...draft.control("role")} />
      </Field>
      {role === "sales" && (
        <Checks
          label="Permissions"
          options={permissions}
          chosen={chosen}
          onChange={(now) => draft.change("permissions", now.join())}
        />
      )}
      {user !== undefined && (
        <label className="row">
          <input
            type="checkbox"
            checked={isActive}
            onChange={({ target }) => draft.change("isActive", String(target.checked))}
          />
          May sign in
        </label>
      )}
      <DraftNote draft={draft} />
    </FormDialog>
  );
}
