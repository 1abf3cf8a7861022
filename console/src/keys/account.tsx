/** The page for one service account: its rights, and the table of its keys. */
import type { ApiKey } from "canvassing-client/api";
import { useMemo, useState } from "react";
import { Link, useParams } from "wouter";
import { nameOf } from "../api/reference.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Page } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
import { amount, dateText, timeText } from "../ui/text.ts";
import { Time } from "../ui/time.tsx";
import { labelOf, permissionsOf } from "../users/rights.tsx";
import { AccountForm, DeleteAccount } from "./account-dialogs.tsx";
import { type Action, ActionDialog, NewKeyDialog } from "./key-dialogs.tsx";
import { daysLeft, isLive, useAccount, useKeys } from "./keys.ts";
import { linesOf } from "./scopes.ts";

/** The page marks a key from this many days before its end. The service then sends admins the first reminder. */
const SOON_DAYS = 14;

type Dialog = "key" | "edit" | "delete" | { readonly action: Action; readonly apiKey: ApiKey };

export function ServiceAccountPage() {
  const { id = "" } = useParams<{ id: string }>();
  const query = useAccount(Number(id));
  const keys = useKeys(Number(id));
  const [dialog, setDialog] = useState<Dialog>();
  const close = () => setDialog(undefined);
  const columns = useMemo(() => [...shown, actionColumn(setDialog)], []);
  return (
    <Answer query={query} what="the service account">
      {(account) => (
        <Page
          title={account.name}
          lead={
            <>
              <Link href="/service-accounts">Service accounts</Link> · {labelOf(account.role)} · permissions:{" "}
              {permissionsOf(account)}
            </>
          }
          actions={
            <>
              <Button kind="main" onClick={() => setDialog("key")}>
                New key
              </Button>
              <Button onClick={() => setDialog("edit")}>Edit</Button>
              <Button kind="danger" onClick={() => setDialog("delete")}>
                Delete
              </Button>
            </>
          }
        >
          <Answer query={keys} what="the keys">
            {(rows) => <DataTable label="Keys" columns={columns} rows={rows} empty={<p>There is no key yet.</p>} />}
          </Answer>
          {dialog === "key" && <NewKeyDialog account={account} onClose={close} />}
          {dialog === "edit" && <AccountForm account={account} onClose={close} />}
          {dialog === "delete" && <DeleteAccount account={account} onClose={close} />}
          {typeof dialog === "object" && <ActionDialog accountId={account.id} {...dialog} onClose={close} />}
        </Page>
      )}
    </Answer>
  );
}

/** Shows when a key ends, and why. */
function End({ apiKey }: { apiKey: ApiKey }) {
  const { expiresAt, orphanedAt, replacedBy, createdBy } = apiKey;
  const days = daysLeft(apiKey);
  return (
    <div className="stack tight">
      <span className="row">
        <Time iso={expiresAt} />
        {days <= 0 && <Badge>Ended</Badge>}
        {days > 0 && days <= SOON_DAYS && <Badge kind="warn">{`${amount(days, "day")} left`}</Badge>}
      </span>
      {replacedBy !== null && (
        <small>
          Replaced by pck_{replacedBy}…{days > 0 && `, works until ${timeText(expiresAt)}`}
        </small>
      )}
      {orphanedAt !== null && (
        <small>
          Its creator{createdBy && ` ${nameOf(createdBy)}`} is disabled or has a lower role now. It ends on{" "}
          {dateText(expiresAt)}, unless an admin takes it over.
        </small>
      )}
    </div>
  );
}

const shown: readonly Column<ApiKey>[] = [
  {
    id: "name",
    header: "Name",
    cell: ({ id, name, last4 }) => (
      <div className="stack tight">
        <strong>{name}</strong>
        <code className="whole">{`pck_${id}…${last4}`}</code>
      </div>
    ),
  },
  {
    id: "scopes",
    header: "May",
    cell: ({ scopes }) => (
      <div>
        {linesOf(scopes).map((line) => (
          <div key={line}>{line}</div>
        ))}
      </div>
    ),
  },
  { id: "creator", header: "Created by", minor: true, cell: ({ createdBy }) => createdBy && nameOf(createdBy) },
  { id: "end", header: "Ends", cell: (apiKey) => <End apiKey={apiKey} /> },
  { id: "used", header: "Last used", cell: ({ lastUsedAt }) => (lastUsedAt ? <Time iso={lastUsedAt} /> : "Never") },
];

/** Returns true if the page offers the action. A key that has ended can be taken over, because it may have ended for lack of a creator. */
const isPossible = (action: Action, key: ApiKey): boolean =>
  action === "Take over" ? key.orphanedAt !== null : isLive(key) && (action === "Revoke" || key.replacedBy === null);

const actionColumn = (open: (dialog: Dialog) => void): Column<ApiKey> => ({
  id: "actions",
  header: "Actions",
  isQuiet: true,
  align: "right",
  cell: (apiKey) =>
    (["Take over", "Rotate", "Revoke"] as const)
      .filter((action) => isPossible(action, apiKey))
      .map((action) => (
        <Button
          key={action}
          kind="quiet"
          aria-label={`${action} ${apiKey.name} …${apiKey.last4}`}
          onClick={() => open({ action, apiKey })}
        >
          {action}
        </Button>
      )),
});
