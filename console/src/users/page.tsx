/** The page with the users of the company. Everybody sees the list; admins also invite and change users. */
import type { User } from "canvassing-client/api";
import { useMemo, useState } from "react";
import * as limits from "../../../shared/limits.ts";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { isAdmin, nameOf, useMe, useUsers } from "../api/reference.ts";
import { useDraft } from "../drafts/draft.tsx";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Field, Fields, Input } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { notifyDone } from "../ui/notices.tsx";
import { Page } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
import { labelOf, permissionsOf, RightsFields, rightsIn } from "./rights.tsx";

export function UsersPage() {
  const query = useUsers();
  const me = useMe().data;
  const [open, setOpen] = useState<User | "new">();
  const canChange = me !== undefined && isAdmin(me);
  const columns = useMemo(() => (canChange ? [...shown, editColumn(setOpen)] : shown), [canChange]);
  return (
    <Page
      title="Users"
      lead="Who works with the company's prospects, and what they may do."
      actions={
        canChange && (
          <Button kind="main" onClick={() => setOpen("new")}>
            Invite a user
          </Button>
        )
      }
    >
      <Answer query={query} what="the users">
        {(users) => <DataTable label="Users" columns={columns} rows={users.filter(isShown)} />}
      </Answer>
      {open !== undefined && <UserForm user={open === "new" ? undefined : open} onClose={() => setOpen(undefined)} />}
    </Page>
  );
}

/**
 * The table shows disabled people, because admins can enable them again. An inactive service account is a deleted one, so it is not shown.
 */
const isShown = ({ type, isActive }: User): boolean => type !== "service" || isActive;

const shown: readonly Column<User>[] = [
  { id: "name", header: "Name", cell: (user) => <strong>{nameOf(user)}</strong> },
  { id: "email", header: "E-mail", cell: ({ email, type }) => (type === "service" ? "" : email), minor: true },
  { id: "role", header: "Role", cell: ({ role }) => labelOf(role) },
  { id: "permissions", header: "Permissions", minor: true, cell: permissionsOf },
  {
    id: "state",
    header: "State",
    cell: ({ isActive, invitation }) => {
      if (!isActive) return <Badge kind="bad">Disabled</Badge>;
      if (invitation === "accepted") return <Badge kind="good">Active</Badge>;
      return <Badge kind="warn">{invitation === "pending" ? "Invited" : "Invitation ended"}</Badge>;
    },
  },
];

const editColumn = (open: (user: User) => void): Column<User> => ({
  id: "edit",
  header: "Actions",
  isQuiet: true,
  align: "right",
  cell: (user) =>
    user.type !== "service" && (
      <Button kind="quiet" aria-label={`Edit ${nameOf(user)}`} onClick={() => open(user)}>
        Edit
      </Button>
    ),
});

/** Maximum characters of a chosen value in the draft. The longest value is the list of all permissions, which is shorter. */
const CHOICE = 200;

function UserForm({ user, onClose }: { user: User | undefined; onClose: () => void }) {
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
  const isActive = draft.text("isActive") === "true";
  const save = useChange({
    run: () => {
      const names = { firstName: draft.text("firstName"), lastName: draft.text("lastName") };
      const body = { ...names, ...rightsIn(draft) };
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
      draft={draft}
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
      <RightsFields draft={draft} label="Permissions" />
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
    </FormDialog>
  );
}
