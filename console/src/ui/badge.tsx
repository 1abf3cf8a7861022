/** Small marks: the status of a prospect with its colour, and the state of a job, delivery or webhook. */
import style from "./badge.module.css";

/** The colour that the API uses for prospects without a status. */
export const NO_STATUS = "#9CA3AF";

/** Only a dot has the colour of the status. Companies choose these colours, so text in such a colour might be hard to read. */
export function StatusMark({ status }: { status: { value: string; color: string } | null }) {
  return (
    <span className={style.status}>
      <Dot color={status?.color ?? NO_STATUS} />
      {status?.value ?? "No status"}
    </span>
  );
}

export function Dot({ color }: { color: string }) {
  return (
    <svg className={style.dot} width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
      <circle cx="5" cy="5" r="4.5" fill={color} />
    </svg>
  );
}

type BadgeKind = "plain" | "good" | "bad" | "warn";
/** The kinds of badges by state. A state of a later release has no kind here, and its badge is plain. */
export type BadgeKinds = Readonly<Record<string, BadgeKind>>;

export function Badge({ kind = "plain", children }: { kind?: BadgeKind | undefined; children: string }) {
  return (
    <span className={style.badge} data-kind={kind}>
      {children}
    </span>
  );
}
