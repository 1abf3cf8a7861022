/** Labelled fields of forms. */
import { type ComponentProps, createContext, type ReactNode, use, useId, useLayoutEffect } from "react";
import style from "./field.module.css";
import { FormContext } from "./form.tsx";

/** The attributes that connect the control of a field with the field's label, hint and fault. */
interface ControlAttributes {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": true | undefined;
}

export const FieldContext = createContext<ControlAttributes | undefined>(undefined);

interface FieldProps {
  readonly label: string;
  /** The member of the request's body that the field sets. If the service refuses this member, the form marks the field. */
  readonly name?: string;
  readonly hint?: ReactNode;
  readonly children: ReactNode;
}

export function Field({ label, name, hint, children }: FieldProps) {
  const id = useId();
  const hintId = useId();
  const form = use(FormContext);
  const labels = form?.labels;
  useLayoutEffect(() => {
    if (name === undefined) return;
    labels?.set(name, label);
    return () => {
      labels?.delete(name);
    };
  }, [labels, name, label]);
  const isInvalid = form?.faults.some(({ field }) => field === name) ?? false;
  const described = [hint === undefined ? undefined : hintId, isInvalid ? form?.textId : undefined];
  const attributes = {
    id,
    "aria-describedby": described.filter((part) => part !== undefined).join(" ") || undefined,
    "aria-invalid": isInvalid || undefined,
  } as const;
  return (
    <div className={style.field}>
      <label htmlFor={id}>{label}</label>
      <FieldContext value={attributes}>{children}</FieldContext>
      {hint !== undefined && <small id={hintId}>{hint}</small>}
    </div>
  );
}

export function Input(props: Omit<ComponentProps<"input">, "className">) {
  return <input className={style.control} {...use(FieldContext)} {...props} />;
}

export function Select(props: Omit<ComponentProps<"select">, "className">) {
  return <select className={style.control} {...use(FieldContext)} {...props} />;
}

export function TextArea(props: Omit<ComponentProps<"textarea">, "className">) {
  return <textarea className={style.control} rows={3} {...use(FieldContext)} {...props} />;
}

/** Shows fields side by side where the screen is wide enough. */
export function Fields({ children }: { children: ReactNode }) {
  return <div className={style.fields}>{children}</div>;
}
