/** The panel for one prospect beside the map or the table: its data, its history, and what the user can do with it. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { ProspectDetail, ProspectPatch } from "canvassing-client/api";
import { type ReactNode, useRef } from "react";
import { answer, api } from "../api/client.ts";
import { randomUuid } from "../api/once.ts";
import { isAdmin, mayManage, useMe, useStatuses, useUserOptions, useUsers } from "../api/reference.ts";
import { Button } from "../ui/button.tsx";
import { Field, Fields } from "../ui/field.tsx";
import { useFocusReturn } from "../ui/focus.ts";
import { Icon } from "../ui/icon.tsx";
import { type Choice, Menu } from "../ui/menu.tsx";
import { dismiss, notifyDone, notifyFailed, notifyUndo } from "../ui/notices.tsx";
import { Answer } from "../ui/states.tsx";
import { Time } from "../ui/time.tsx";
import { titleOf } from "./columns.tsx";
import style from "./drawer.module.css";
import { Appointments, History, Notes } from "./history.tsx";
import { PROSPECTS, useProspect } from "./queries.ts";

export function Drawer({ id, onClose }: { id: number; onClose: () => void }) {
  const query = useProspect(id);
  // Start to load the choices of the panel's lists at the same time as the prospect.
  useStatuses();
  useUsers();
  const panel = useRef<HTMLElement>(null);
  useFocusReturn(panel, { key: id, open: (element) => element.focus() });
  return (
    <aside
      ref={panel}
      className={`${style.drawer} stack`}
      aria-label="Prospect"
      tabIndex={-1}
      onKeyDown={({ key, target, nativeEvent }) => {
        // Escape in a dialog closes only the dialog. While the user composes a character, Escape only ends the composition.
        const isElsewhere = nativeEvent.isComposing || (target instanceof Element && target.closest("dialog") !== null);
        if (key === "Escape" && !isElsewhere) onClose();
      }}
    >
      <div className={style.close}>
        <Button kind="quiet" aria-label="Close the prospect" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </div>
      <Answer query={query} what="the prospect">
        {(prospect) => <Detail key={prospect.id} prospect={prospect} />}
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
        <p className="muted">{address?.formattedAddress}</p>
      </header>
      <Change prospect={prospect} />
      <ActionButtons prospectId={prospect.id} />
      <dl className={style.facts}>
        <Fact name="Phone">{phoneNumber && <a href={`tel:${phoneNumber}`}>{phoneNumber}</a>}</Fact>
        <Fact name="Second phone">{secondaryPhoneNumber}</Fact>
        <Fact name="E-mail">{emailAddress && <a href={`mailto:${emailAddress}`}>{emailAddress}</a>}</Fact>
        <Fact name="Tags">{tags.map(({ tag }) => tag.value).join(", ")}</Fact>
        <Fact name="Source">{source}</Fact>
        <Fact name="Created">
          <Time iso={createdAt} />
        </Fact>
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
function Change({ prospect }: { prospect: ProspectDetail }) {
  const { currentStatus, assignedTo } = prospect;
  const me = useMe().data;
  const statuses = useStatuses();
  const users = useUsers();
  const active = useUserOptions(assignedTo?.id);
  return (
    <Fields>
      <Answer query={statuses} what="the statuses">
        {(all) => (
          <SavedChoice
            prospect={prospect}
            label="Status"
            shown="currentStatus"
            bodyOf={(currentStatusId) => ({ currentStatusId })}
            choices={[
              { value: null, text: "No status" },
              ...all
                .filter((status) => status.isActive || status.id === currentStatus?.id)
                .map((status) => ({ value: status.id, text: status.value, color: status.color })),
            ]}
          />
        )}
      </Answer>
      {me !== undefined && (isAdmin(me) || mayManage(me)) && (
        <Answer query={users} what="the users">
          {() => (
            <SavedChoice
              prospect={prospect}
              label="Assigned to"
              shown="assignedTo"
              bodyOf={(assignedToUserId) => ({ assignedToUserId })}
              choices={[{ value: null, text: "Nobody" }, ...active.map(([value, text]) => ({ value, text }))]}
            />
          )}
        </Answer>
      )}
    </Fields>
  );
}

interface SavedChoiceProps {
  readonly prospect: ProspectDetail;
  readonly label: string;
  readonly shown: Shown;
  readonly choices: readonly Choice[];
  readonly bodyOf: (value: number | null) => ProspectPatch;
}

interface Chosen {
  readonly value: number | null;
  readonly before: number | null;
  readonly isUndo: boolean;
}

/** A list that shows and saves a choice as soon as the user makes it. The undo is a second change. */
function SavedChoice({ prospect, label, shown, choices, bodyOf }: SavedChoiceProps) {
  const { id } = prospect;
  const queries = useQueryClient();
  const button = useRef<HTMLButtonElement>(null);
  const notice = useRef(0);
  const change = useMutation({
    // Changes of one prospect are sent one after the other, so that the last choice is the last change.
    scope: { id: `prospect-${id}` },
    mutationFn: async ({ value, before, isUndo }: Chosen) => {
      const body = bodyOf(value);
      if (isUndo) await undoChange(id, body, shown, before);
      else await answer(api.PATCH("/api/prospects/{id}", { params: { path: { id } }, body }));
    },
    onMutate: () => dismiss(notice.current),
    onSuccess: (_, { value, before, isUndo }) => {
      if (isUndo) return;
      const text = choices.find((choice) => choice.value === value)?.text ?? "";
      notice.current = notifyUndo(`${label}: ${text}.`, () => {
        change.mutate({ value: before, before: value, isUndo: true });
        button.current?.focus();
      });
    },
    onError: notifyFailed,
    onSettled: () => queries.invalidateQueries({ queryKey: PROSPECTS }),
  });
  const value = change.isPending ? change.variables.value : (prospect[shown]?.id ?? null);
  return (
    <Field label={label}>
      <Menu
        button={button}
        choices={choices}
        value={value}
        onChoose={(chosen) => change.mutate({ value: chosen, before: value, isUndo: false })}
      />
    </Field>
  );
}

/** Buttons that send webhooks: one for each registration with `triggerMode: manual` whose filter matches the prospect. */
function ActionButtons({ prospectId: id }: { prospectId: number }) {
  const actions = useQuery({
    queryKey: ["prospects", "actions", id],
    queryFn: () => answer(api.GET("/api/prospects/{id}/actions", { params: { path: { id } } })),
  });
  const trigger = useMutation({
    mutationFn: (registrationId: number) =>
      answer(api.POST("/api/prospects/{id}/actions/{registrationId}", { params: { path: { id, registrationId } } })),
    onSuccess: () => notifyDone("The webhook will be sent."),
    onError: notifyFailed,
  });
  if (actions.data === undefined || actions.data.length === 0) return null;
  return (
    <div className="row">
      {actions.data.map(({ registrationId, label }) => (
        <Button key={registrationId} disabled={trigger.isPending} onClick={() => trigger.mutate(registrationId)}>
          {label}
        </Button>
      ))}
    </div>
  );
}

/** The member of a prospect that a change has set. */
type Shown = keyof Pick<ProspectDetail, "currentStatus" | "assignedTo">;

/**
 * A version below that of any changed prospect, so that the service answers the first operation with a conflict. This answer contains the
 * present prospect and its version. The answers to PATCH and GET have no version.
 */
const OLDEST = 1;

/** Undoes a change. Throws an error if the member `shown` no longer has the id `changedTo`. Other changes of the prospect do not matter. */
async function undoChange(id: number, fields: ProspectPatch, shown: Shown, changedTo: number | null): Promise<void> {
  for (let baseVersion = OLDEST; ; ) {
    const operation = { opId: randomUuid(), type: "prospect.update" as const, id, fields, baseVersion };
    const body = { deviceId: "console", operations: [operation] };
    const [result] = (await answer(api.POST("/api/sync/operations", { body }))).results;
    if (result?.outcome === "applied") return;
    if (result?.outcome !== "conflict" || result.version === null) {
      throw new Error(result?.problem?.detail ?? "The service is busy. Try again in a moment.");
    }
    if (idIn(result.record?.[shown]) !== changedTo) {
      throw new Error("Somebody has changed this again, so it was not undone.");
    }
    baseVersion = result.version;
  }
}

const idIn = (record: unknown): unknown =>
  typeof record === "object" && record !== null && "id" in record ? record.id : null;
