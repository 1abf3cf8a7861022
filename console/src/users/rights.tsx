/** The role and the permissions of a user or a service account. A role or permission of a later release is shown by its API name. */
import type { User } from "canvassing-client/api";
import type { DraftOf } from "../drafts/draft.tsx";
import { Checks, Field, Select } from "../ui/field.tsx";

const roles = [
  ["sales", "Sales representative"],
  ["admin", "Administrator"],
  ["owner", "Owner"],
] as const;

const permissions = [
  ["canViewAllProspects", "Sees all prospects"],
  ["canManageProspects", "Imports and assigns prospects"],
] as const;

const names: ReadonlyMap<string, string> = new Map([...roles, ...permissions]);
export const labelOf = (name: string): string => names.get(name) ?? name;

/** Admins and owners hold every permission. */
export const permissionsOf = ({ role, permissions: held }: Pick<User, "role" | "permissions">): string =>
  role === "sales" ? held.map(labelOf).join(", ") || "Own prospects only" : "All";

type Rights = DraftOf<"role" | "permissions">;

export function rightsIn(draft: Rights) {
  const [role] = roles.find(([one]) => one === draft.text("role")) ?? roles[0];
  const chosen = draft.text("permissions").split(",");
  return { role, permissions: permissions.map(([name]) => name).filter((name) => chosen.includes(name)) };
}

interface RightsProps {
  readonly draft: Rights;
  readonly label: string;
  /** A permission that the account always has. */
  readonly implied?: (typeof permissions)[number][0];
}

/** The fields `role` and `permissions` of a form. */
export function RightsFields({ draft, label, implied }: RightsProps) {
  const { role, permissions: chosen } = rightsIn(draft);
  return (
    <>
      <Field label="Role" name="role">
        <Select options={roles} {...draft.control("role")} />
      </Field>
      {role === "sales" && (
        <Checks
          label={label}
          options={permissions.filter(([name]) => name !== implied)}
          chosen={chosen}
          onChange={(now) => draft.change("permissions", now.join())}
        />
      )}
    </>
  );
}
