/** The panel for one territory: how many prospects are inside, and what the user can do with the territory. */
import type { Territory } from "canvassing-client/api";
import type { Map as MapLibre } from "maplibre-gl";
import { type ReactNode, useEffect, useState } from "react";
import { Link } from "wouter";
import { FieldError } from "../api/faults.ts";
import { mayManage, nameOf, useMe } from "../api/reference.ts";
import { useStats } from "../api/stats.ts";
import { editPolygon } from "../map/draw.ts";
import { closed } from "../map/features.ts";
import { StatusMark } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Form } from "../ui/form.tsx";
import { Icon } from "../ui/icon.tsx";
import { Modal } from "../ui/modal.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { Answer } from "../ui/states.tsx";
import { amount, numberText } from "../ui/text.ts";
import { POLYGON, ringOf, textOf } from "./corners.ts";
import { useTerritoryDraft } from "./draft.ts";
import { TerritoryForm } from "./form.tsx";
import style from "./page.module.css";
import { useDelete, useSave } from "./queries.ts";
import { RunDialog } from "./run-dialog.tsx";

interface PanelProps {
  readonly territory: Territory;
  readonly map: MapLibre | undefined;
  readonly onClose: () => void;
}

export function TerritoryPanel({ territory, map, onClose }: PanelProps) {
  const me = useMe().data;
  const [dialog, setDialog] = useState<"form" | "run" | "delete">();
  return (
    <aside className={style.panel} aria-label={`Territory ${territory.name}`}>
      <header className={style.panelHead}>
        <h2>{territory.name}</h2>
        <Button kind="quiet" aria-label="Close the territory" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </header>
      <Counts id={territory.id} />
      <div className={style.buttons}>
        {me !== undefined && mayManage(me) && (
          <Button kind="main" onClick={() => setDialog("run")}>
            Assign the prospects …
          </Button>
        )}
        <Button onClick={() => setDialog("form")}>Edit</Button>
        {map !== undefined && <MoveCorners territory={territory} map={map} />}
        <Button kind="danger" onClick={() => setDialog("delete")}>
          Delete
        </Button>
      </div>
      {dialog === "form" && <TerritoryForm edited={territory} onClose={() => setDialog(undefined)} />}
      {dialog === "run" && <RunDialog territory={territory} onClose={() => setDialog(undefined)} />}
      {dialog === "delete" && (
        <DeleteDialog territory={territory} onClose={() => setDialog(undefined)} onDeleted={onClose} />
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
          <Bars title="By status" total={total}>
            {byStatus.map(({ status, count }) => [status?.id ?? 0, <StatusMark key="mark" status={status} />, count])}
          </Bars>
          <Bars title="By rep" total={total}>
            {byAssignee.map(({ user, count }) => [user?.id ?? 0, user === null ? "Nobody" : nameOf(user), count])}
          </Bars>
        </>
      )}
    </Answer>
  );
}

interface BarsProps {
  readonly title: string;
  readonly total: number;
  readonly children: readonly (readonly [key: number, label: ReactNode, count: number])[];
}

function Bars({ title, total, children }: BarsProps) {
  if (total === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul className={style.bars}>
        {children.map(([key, label, count]) => (
          <li key={key}>
            <span>{label}</span>
            <span>{numberText(count)}</span>
            <meter max={total} value={count} aria-label={`${count} of ${total}`} />
          </li>
        ))}
      </ul>
    </section>
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
  // Also stops if the user closes the panel while the corners are moved.
  useEffect(() => () => editing?.stop(), [editing]);
  const save = useSave(territory.id, finish);
  if (editing === undefined) {
    return <Button onClick={begin}>Move corners</Button>;
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

interface DeleteProps {
  readonly territory: Territory;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

function DeleteDialog({ territory: { id, name }, onClose, onDeleted }: DeleteProps) {
  const remove = useDelete(onDeleted);
  return (
    <Modal title={`Delete ${name}?`} onClose={onClose}>
      <Form
        submit="Delete the territory"
        danger
        isBusy={remove.isPending}
        error={remove.error}
        onSubmit={() => remove.mutate(id)}
      >
        <p>The prospects inside stay as they are.</p>
      </Form>
    </Modal>
  );
}
