/** The panel for one territory, and the dialog that changes the fields of a territory or creates one. */
import type { Territory } from "canvassing-client/api";
import type { Map as MapLibre } from "maplibre-gl";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { FieldError } from "../api/faults.ts";
import { mayManage, nameOf, useMe, useUserOptions } from "../api/reference.ts";
import { editPolygon } from "../map/draw.ts";
import { closed } from "../map/features.ts";
import { useStats } from "../map/queries.ts";
import { BulkDialog } from "../prospects/bulk-dialog.tsx";
import { NO_STATUS, StatusMark } from "../ui/badge.tsx";
import { Bars } from "../ui/bars.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { DeleteDialog } from "../ui/delete-dialog.tsx";
import { Field, Input, Select, TextArea } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { Icon } from "../ui/icon.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { Answer } from "../ui/states.tsx";
import { amount } from "../ui/text.ts";
import { POLYGON, ringOf, textOf } from "./corners.ts";
import { type Edited, useDelete, useSave, useTerritoryDraft } from "./edits.ts";
import style from "./page.module.css";

interface PanelProps {
  readonly territory: Territory;
  readonly map: MapLibre | undefined;
  readonly onClose: () => void;
}

/** Scrolls to the panel, because the user may have scrolled far down in the list of territories. */
const show = (panel: HTMLElement | null): void => panel?.scrollIntoView({ block: "nearest" });

export function TerritoryPanel({ territory, map, onClose }: PanelProps) {
  const me = useMe().data;
  const [dialog, setDialog] = useState<"form" | "change" | "delete">();
  const close = () => setDialog(undefined);
  const remove = useDelete(territory.id, onClose);
  return (
    <aside ref={show} className={`${style.panel} card stack`} aria-label={`Territory ${territory.name}`}>
      <header className="row between">
        <h2>{territory.name}</h2>
        <Button kind="quiet" aria-label="Close the territory" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </header>
      <Counts id={territory.id} />
      {me !== undefined && mayManage(me) && (
        <Button kind="main" onClick={() => setDialog("change")}>
          Change the prospects …
        </Button>
      )}
      <div className={`${style.actions} row`}>
        <Button kind="quiet" onClick={() => setDialog("form")}>
          Edit
        </Button>
        {map !== undefined && <MoveCorners territory={territory} map={map} />}
        <Link className={buttonClass("quiet")} href={`/territories/${territory.id}/print`}>
          Print
        </Link>
        <Button kind="danger" onClick={() => setDialog("delete")}>
          Delete
        </Button>
      </div>
      {dialog === "form" && <TerritoryForm edited={territory} onClose={close} />}
      {dialog === "change" && (
        <BulkDialog target={{ filter: { territoryId: String(territory.id) } }} onClose={close} onStarted={close} />
      )}
      {dialog === "delete" && (
        <DeleteDialog what="territory" name={territory.name} request={remove} onClose={close}>
          The prospects inside stay as they are.
        </DeleteDialog>
      )}
    </aside>
  );
}

function Counts({ id }: { id: number }) {
  const stats = useStats(id);
  return (
    <Answer query={stats} what="the counts">
      {({ total, byStatus, byAssignee, untouchedDays }) => (
        <>
          <p>
            <strong>{amount(total, "prospect")}</strong> inside.{" "}
            <Link href={`/prospects?territoryId=${id}`}>Show them</Link>
          </p>
          {untouchedDays !== null && (
            <p>Longest time without a change of a prospect: {amount(untouchedDays, "day")}.</p>
          )}
          {total > 0 && (
            <>
              <h3>By status</h3>
              <Bars
                label="Prospects by status"
                bars={byStatus.map(({ status, count }) => ({
                  key: status?.id ?? 0,
                  label: <StatusMark status={status} />,
                  color: status?.color ?? NO_STATUS,
                  count,
                }))}
              />
              <h3>By rep</h3>
              <Bars
                label="Prospects by rep"
                bars={byAssignee.map(({ user, count }) => ({
                  key: user?.id ?? 0,
                  label: user === null ? "Nobody" : nameOf(user),
                  count,
                }))}
              />
            </>
          )}
        </>
      )}
    </Answer>
  );
}

/** Lets the user drag the corners on the map. The service gets the new polygon only when the user saves it. */
function MoveCorners({ territory, map }: { territory: Territory; map: MapLibre }) {
  const [editing, setEditing] = useState<{ stop: () => void; ring: () => number[][] | undefined }>();
  const draft = useTerritoryDraft(territory);
  const finish = () => {
    draft.discard(POLYGON);
    setEditing(undefined);
  };
  const begin = (): void => {
    const drafted = ringOf(draft.text(POLYGON));
    const ring = drafted instanceof FieldError ? territory.polygon : drafted;
    setEditing(editPolygon(map, closed(ring), (moved) => draft.change(POLYGON, textOf(moved))));
  };
  // End the editing also if the user closes the panel while the corners are moved.
  useEffect(() => () => editing?.stop(), [editing]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new map ends the editing; the draft keeps the corners
  useEffect(() => setEditing(undefined), [map]);
  const save = useSave(territory.id, finish);
  if (editing === undefined) {
    return (
      <Button kind="quiet" onClick={begin}>
        Move corners
      </Button>
    );
  }
  const { ring } = editing;
  return (
    <>
      <Button
        kind="main"
        disabled={save.isPending}
        onClick={() => {
          const polygon = ring();
          if (polygon !== undefined) save.mutate({ polygon }, { onError: notifyFailed });
        }}
      >
        Save the corners
      </Button>
      <Button onClick={finish}>Cancel</Button>
    </>
  );
}

interface FormProps {
  readonly edited: Edited;
  readonly onClose: () => void;
}

/** The user can type the corners of the polygon, so that drawing with a mouse is not necessary. */
export function TerritoryForm({ edited, onClose }: FormProps) {
  const territory = typeof edited === "string" ? undefined : edited;
  const users = useUserOptions(territory?.assignedToUserId ?? undefined);
  const draft = useTerritoryDraft(edited);
  const [name, assignee, corners] = [draft.text("name"), draft.text("assignedToUserId"), draft.text(POLYGON)];
  const save = useSave(territory?.id, () => {
    draft.discard();
    onClose();
  });
  const [fault, setFault] = useState<FieldError>();
  const submit = () => {
    const polygon = ringOf(corners);
    setFault(polygon instanceof FieldError ? polygon : undefined);
    if (polygon instanceof FieldError) return;
    // An unchanged polygon is not sent, so that its stored coordinates stay exactly the same.
    const changed = territory === undefined || corners !== textOf(territory.polygon);
    save.mutate({
      ...(name.trim() !== "" && { name: name.trim() }),
      assignedToUserId: assignee === "" ? null : Number(assignee),
      ...(changed && polygon.length > 0 && { polygon }),
    });
  };
  return (
    <FormDialog
      title={territory === undefined ? "New territory" : "Edit the territory"}
      submit="Save"
      request={{ isPending: save.isPending, error: fault ?? save.error, mutate: submit }}
      draft={draft}
      onClose={onClose}
    >
      <Field label="Name" name="name">
        <Input placeholder="Untitled Territory" {...draft.control("name")} />
      </Field>
      <Field label="Assigned to" name="assignedToUserId" hint="This does not change the prospects inside.">
        <Select none="Nobody" options={users} {...draft.control("assignedToUserId")} />
      </Field>
      <Field label="Corners" name={POLYGON} hint="One corner a line: longitude, latitude. At least three.">
        <TextArea rows={6} {...draft.control(POLYGON)} />
      </Field>
    </FormDialog>
  );
}
