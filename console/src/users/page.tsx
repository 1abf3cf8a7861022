/** The page with the users of the company. Everybody sees the list; admins also invite and change users. */
import type { User } from "canvassing-client/api";
import { useMemo, useState } from "react";
import { isAdmin, nameOf, useMe, useUsers } from "../api/reference.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Page } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
import { UserForm } from "./form.tsx";
import { labelOf, permissionsOf } from "./labels.ts";

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
        {(users) => <DataTable label="Users" columns={columns} rows={users.filter(isShown)} rowKey={({ id }) => id} />}
      </Answer>
      {open !== undefined && <UserForm user={open === "new" ? undefined : open} onClose={() => setOpen(undefined)} />}
    </Page>
  );
}

/** A disabled person can be enabled again. A service account that is not active is deleted. */
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
