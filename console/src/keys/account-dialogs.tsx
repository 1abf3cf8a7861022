/** The dialogs that create, change and delete a service account. */
import type { ServiceAccount } from "canvassing-client/api";
import { useLocation } from "wouter";
import * as limits from "../../../shared/limits.ts";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { DraftNote, useDraft } from "../drafts/draft.tsx";
import { DeleteDialog } from "../ui/delete-dialog.tsx";
import { Checks, Field, Input, Select } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { permissions, roles } from "../users/labels.ts";
import { isLive, stale, useKeys } from "./keys.ts";

/** No prospect is assigned to a program, so a service account must see all prospects. */
const choices = permissions.filter(([permission]) => permission !== "canViewAllProspects");

/** `account` is undefined for a new one. */
export function AccountForm({ account, onClose }: { account?: ServiceAccount; onClose: () => void }) {
  const [, open] = useLocation();
  const title = account === undefined ? "New service account" : `Edit ${account.name}`;
  const draft = useDraft(
    { record: `service-account:${account?.id ?? "new"}`, title, path: "/service-accounts" },
    {
      name: [account?.name ?? "", limits.name],
      role: [account?.role ?? "sales", limits.name],
      permissions: [(account?.permissions ?? []).join(), limits.name],
    },
  );
  const [role] = roles.find(([one]) => one === draft.text("role")) ?? roles[0];
  const chosen = draft.text("permissions").split(",");
  const save = useChange({
    run: () => {
      const more = choices.map(([permission]) => permission).filter((permission) => chosen.includes(permission));
      const body = { name: draft.text("name"), role, permissions: ["canViewAllProspects" as const, ...more] };
      if (account === undefined) return answer(api.POST("/api/service-accounts", { body }));
      return answer(api.PATCH("/api/service-accounts/{id}", { params: { path: { id: account.id } }, body }));
    },
    stale,
    onDone: ({ id }) => {
      draft.discard();
      onClose();
      open(`/service-accounts/${id}`);
    },
  });
  return (
    <FormDialog title={title} submit="Save" request={save} onSubmit={() => save.mutate()} onClose={onClose}>
      <Field label="Name" name="name" hint="What the program does. Its records show this name.">
        <Input required {...draft.control("name")} />
      </Field>
      <Field label="Role" name="role">
        <Select options={roles} {...draft.control("role")} />
      </Field>
      {role === "sales" && (
        <Checks
          label="Sees all prospects, and also"
          options={choices}
          chosen={chosen}
          onChange={(now) => draft.change("permissions", now.join())}
        />
      )}
      <DraftNote draft={draft} />
    </FormDialog>
  );
}

export function DeleteAccount({ account: { id, name }, onClose }: { account: ServiceAccount; onClose: () => void }) {
  const [, open] = useLocation();
  const names = (useKeys(id).data ?? []).filter(isLive).map((key) => key.name);
  const remove = useChange({
    run: () => answer(api.DELETE("/api/service-accounts/{id}", { params: { path: { id } } })),
    stale,
    onDone: () => open("/service-accounts"),
  });
  return (
    <DeleteDialog what="account" name={name} request={remove} onClose={onClose}>
      {names.length > 0 && `These keys stop working within a minute: ${names.join(", ")}. `}
      Its running jobs stop. Records still show it as their author.
    </DeleteDialog>
  );
}
