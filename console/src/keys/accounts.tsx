/** The service accounts of the company, and a form that creates or changes one. */
import type { ServiceAccount } from "canvassing-client/api";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import * as limits from "../../../shared/limits.ts";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { DraftNote, useDraft } from "../drafts/draft.tsx";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Checks, Field, Input, Select } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { Page } from "../ui/page.tsx";
import { Answer, Empty } from "../ui/states.tsx";
import { Time } from "../ui/time.tsx";
import { labelOf, permissions, permissionsOf, roles } from "../users/labels.ts";
import { isLive, stale, useAccounts, useKeys } from "./keys.ts";

export function ServiceAccountsPage() {
  const query = useAccounts();
  const [isOpen, setOpen] = useState(false);
  return (
    <Page
      title="Service accounts"
      lead="Programs that use the API with keys."
      actions={
        <Button kind="main" onClick={() => setOpen(true)}>
          New service account
        </Button>
      }
    >
      <Answer query={query} what="the service accounts">
        {(accounts) => (
          <DataTable
            label="Service accounts"
            columns={columns}
            rows={accounts}
            rowKey={({ id }) => id}
            empty={<Empty title="There are no service accounts yet">Create one for a program.</Empty>}
          />
        )}
      </Answer>
      {isOpen && <AccountForm onClose={() => setOpen(false)} />}
    </Page>
  );
}

const KeyCount = ({ id }: { id: number }) => useKeys(id).data?.filter(isLive).length ?? "…";

function LastUse({ id }: { id: number }) {
  const times = useKeys(id).data?.flatMap(({ lastUsedAt }) => lastUsedAt ?? []);
  const last = times?.toSorted().at(-1);
  if (last !== undefined) return <Time iso={last} />;
  return times === undefined ? "…" : "Never";
}

const columns: readonly Column<ServiceAccount>[] = [
  {
    id: "name",
    header: "Name",
    cell: ({ id, name }) => (
      <Link className="open" href={`/service-accounts/${id}`}>
        {name}
      </Link>
    ),
  },
  { id: "role", header: "Role", cell: ({ role }) => labelOf(role) },
  { id: "permissions", header: "Permissions", minor: true, cell: permissionsOf },
  { id: "keys", header: "Keys", cell: ({ id }) => <KeyCount id={id} /> },
  { id: "used", header: "Last used", cell: ({ id }) => <LastUse id={id} /> },
];

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
