/** The dialogs that create, change and delete a service account. */
import type { ServiceAccount } from "canvassing-client/api";
import { useLocation } from "wouter";
import * as limits from "../../../shared/limits.ts";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { useDraft } from "../drafts/draft.tsx";
import { DeleteDialog } from "../ui/delete-dialog.tsx";
import { Field, Input } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { RightsFields, rightsIn } from "../users/rights.tsx";
import { isLive, stale, useKeys } from "./keys.ts";

/** The permission that every service account gets. Without it, the account would see no prospects, because none is assigned to it. */
const IMPLIED = "canViewAllProspects";

/** Without `account`, the form creates a service account. */
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
  const save = useChange({
    run: () => {
      const { role, permissions } = rightsIn(draft);
      const body = { name: draft.text("name"), role, permissions: [...new Set([IMPLIED, ...permissions] as const)] };
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
    <FormDialog title={title} submit="Save" request={save} draft={draft} onClose={onClose}>
      <Field label="Name" name="name" hint="What the program does. Its records show this name.">
        <Input required {...draft.control("name")} />
      </Field>
      <RightsFields draft={draft} label="Sees all prospects, and also" implied={IMPLIED} />
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
