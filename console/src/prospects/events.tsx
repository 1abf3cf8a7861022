/** A part of the panel of a prospect with what has happened, or will happen, there. */
import type { ProspectDetail } from "canvassing-client/api";
import type { ReactNode } from "react";
import { nameOf } from "../api/reference.ts";
import { Time } from "../ui/time.tsx";
import style from "./drawer.module.css";

export function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={`${style.section} stack tight`}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

type Made = Pick<ProspectDetail["notes"][number], "createdAt" | "occurredAt"> & {
  readonly by: ProspectDetail["notes"][number]["createdBy"];
};

/** Who has done something, and when. */
export function MadeBy({ by, createdAt, occurredAt }: Made) {
  return (
    <small className="muted">
      {by === null ? "" : `${nameOf(by)}, `}
      <Time iso={occurredAt ?? createdAt} />
    </small>
  );
}
