/** The page with the service accounts of the company. */
import type { ServiceAccount } from "canvassing-client/api";
import { useState } from "react";
import { Link } from "wouter";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Page } from "../ui/page.tsx";
import { Answer, Empty } from "../ui/states.tsx";
import { Time } from "../ui/time.tsx";
import { labelOf, permissionsOf } from "../users/rights.tsx";
import { AccountForm } from "./account-dialogs.tsx";
import { isLive, useAccounts, useKeys } from "./keys.ts";

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
