/** Small marks: the status of a prospect with its colour, and the state of a job, delivery or webhook. */
import style from "./badge.module.css";

/** The colour that the API uses for prospects without a status. */
export const NO_STATUS = "#9CA3AF";

/** Returns a background with a little of a status's colour. Text stays readable on it, whatever colour the company has chosen. */
export const tint = (color: string): string => `color-mix(in srgb, ${color} 14%, var(--surface))`;

export function StatusMark({ status }: { status: { value: string; color: string } | null }) {
  const color = status?.color ?? NO_STATUS;
  return (
    <span className={style.status} style={{ background: tint(color) }}>
      <Dot color={color} />
      {status?.value ?? "No status"}
    </span>
  );
}

export function Dot({ color }: { color: string }) {
  return (
    <svg className={style.dot} width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
      <circle cx="5" cy="5" r="4.5" fill={color} stroke="var(--line-control)" strokeWidth="0.5" />
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
