/** The panel for one prospect beside the map or the table: its data, its history, and what the user can do with it. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ProspectDetail } from "canvassing-client/api";
import { type ReactNode, useRef } from "react";
import { answer, api } from "../api/client.ts";
import { isAdmin, mayManage, nameOf, useMe, useStatuses, useUsers } from "../api/reference.ts";
import { StatusMark } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Field, Select } from "../ui/field.tsx";
import { useFocusReturn } from "../ui/focus.ts";
import { Icon } from "../ui/icon.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { Answer } from "../ui/states.tsx";
import { timeText } from "../ui/text.ts";
import { ActionButtons } from "./actions.tsx";
import { Appointments } from "./appointments.tsx";
import { titleOf } from "./columns.tsx";
import style from "./drawer.module.css";
import { Notes } from "./notes.tsx";
import { forgetProspects, useProspect } from "./queries.ts";

export function Drawer({ id, onClose }: { id: number; onClose: () => void }) {
  const query = useProspect(id);
  const panel = useRef<HTMLElement>(null);
  useFocusReturn(panel, { key: id, open: (element) => element.focus() });
  return (
    <aside
      ref={panel}
      className={style.drawer}
      aria-label="Prospect"
      tabIndex={-1}
      onKeyDown={({ key }) => {
        if (key === "Escape") onClose();
      }}
    >
      <div className={style.close}>
        <Button kind="quiet" aria-label="Close the prospect" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </div>
      <Answer query={query} what="the prospect">
        {(prospect) => <Detail prospect={prospect} />}
      </Answer>
    </aside>
  );
}

function Detail({ prospect }: { prospect: ProspectDetail }) {
  const { address, phoneNumber, secondaryPhoneNumber, emailAddress, tags, source, createdAt } = prospect;
  return (
    <>
      <header className={style.head}>
        <h2>{titleOf(prospect)}</h2>
        <p>{address?.formattedAddress}</p>
      </header>
      <Change prospect={prospect} />
      <ActionButtons prospectId={prospect.id} />
      <dl className={style.facts}>
        <Fact name="Phone">{phoneNumber && <a href={`tel:${phoneNumber}`}>{phoneNumber}</a>}</Fact>
        <Fact name="Second phone">{secondaryPhoneNumber}</Fact>
        <Fact name="E-mail">{emailAddress && <a href={`mailto:${emailAddress}`}>{emailAddress}</a>}</Fact>
        <Fact name="Tags">{tags.map(({ tag }) => tag.value).join(", ")}</Fact>
        <Fact name="Source">{source}</Fact>
        <Fact name="Created">{timeText(createdAt)}</Fact>
      </dl>
      <Notes prospect={prospect} />
      <Appointments prospect={prospect} />
      <History prospect={prospect} />
    </>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  if (children === null || children === undefined || children === "") return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Everybody who sees the prospect can change its status. Only users who may manage prospects can change its assignment. */
function Change({ prospect: { id, currentStatus, assignedTo } }: { prospect: ProspectDetail }) {
  const queries = useQueryClient();
  const me = useMe().data;
  const statuses = useStatuses().data ?? [];
  const users = useUsers().data ?? [];
  const change = useMutation({
    mutationFn: (body: { currentStatusId?: number | null; assignedToUserId?: number | null }) =>
      answer(api.PATCH("/api/prospects/{id}", { params: { path: { id } }, body })),
    onSuccess: () => forgetProspects(queries),
    onError: notifyFailed,
  });
  const numberOrNull = (value: string) => (value === "" ? null : Number(value));
  return (
    <div className={style.change}>
      <Field label="Status">
        <Select
          value={currentStatus?.id ?? ""}
          disabled={change.isPending}
          onChange={({ target }) => change.mutate({ currentStatusId: numberOrNull(target.value) })}
        >
          <option value="">No status</option>
          {statuses
            .filter((status) => status.isActive || status.id === currentStatus?.id)
            .map((status) => (
              <option key={status.id} value={status.id}>
                {status.value}
              </option>
            ))}
        </Select>
      </Field>
      {me !== undefined && (isAdmin(me) || mayManage(me)) && (
        <Field label="Assigned to">
          <Select
            value={assignedTo?.id ?? ""}
            disabled={change.isPending}
            onChange={({ target }) => change.mutate({ assignedToUserId: numberOrNull(target.value) })}
          >
            <option value="">Nobody</option>
            {users
              .filter((user) => user.isActive || user.id === assignedTo?.id)
              .map((user) => (
                <option key={user.id} value={user.id}>
                  {nameOf(user)}
                </option>
              ))}
          </Select>
        </Field>
      )}
    </div>
  );
}

function History({ prospect: { statusHistory } }: { prospect: ProspectDetail }) {
  return (
    <section className={style.section}>
      <h3>History</h3>
      {statusHistory.length === 0 && <p className={style.none}>The status has not been set yet.</p>}
      <ol className={style.events}>
        {statusHistory.map(({ id, status, changedBy, createdAt, occurredAt }) => (
          <li key={id}>
            <StatusMark status={status} />
            <small>
              {changedBy === null ? "" : `${nameOf(changedBy)}, `}
              {timeText(occurredAt ?? createdAt)}
            </small>
          </li>
        ))}
      </ol>
    </section>
  );
}
