/** Labelled fields of forms. */
import type { ComponentProps, ReactNode } from "react";
import style from "./field.module.css";

export function Field({ label, hint, children }: { label: string; hint?: ReactNode; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is among the children
    <label className={style.field}>
      <span>{label}</span>
      {children}
      {hint !== undefined && <small>{hint}</small>}
    </label>
  );
}

export function Input(props: Omit<ComponentProps<"input">, "className">) {
  return <input className={style.control} {...props} />;
}

export function Select(props: Omit<ComponentProps<"select">, "className">) {
  return <select className={style.control} {...props} />;
}

export function TextArea(props: Omit<ComponentProps<"textarea">, "className">) {
  return <textarea className={style.control} rows={3} {...props} />;
}

/** Shows fields side by side where the screen is wide enough. */
export function Fields({ children }: { children: ReactNode }) {
  return <div className={style.fields}>{children}</div>;
}
