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

interface SelectProps extends Omit<ComponentProps<"select">, "className" | "children"> {
  /** The values and their texts. */
  readonly options: readonly (readonly [value: string | number, text: string])[];
  /** The text of the empty value, which comes first. Undefined if the user must choose one of the options. */
  readonly none?: string;
}

export function Select({ options, none, ...props }: SelectProps) {
  return (
    <select className={style.control} {...use(FieldContext)} {...props}>
      {none !== undefined && <option value="">{none}</option>}
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

export function TextArea(props: Omit<ComponentProps<"textarea">, "className">) {
  return <textarea className={style.control} rows={3} {...use(FieldContext)} {...props} />;
}

interface ChecksProps<Name extends string> {
  readonly label: string;
  readonly options: readonly (readonly [name: Name, text: string, explained?: string])[];
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly Name[]) => void;
}

/** A group of check boxes. */
export function Checks<Name extends string>({ label, options, chosen, onChange }: ChecksProps<Name>) {
  const names = options.map(([name]) => name);
  return (
    <fieldset className={`${style.checks} box scrolls`}>
      <legend>{label}</legend>
      {options.map(([name, text, explained]) => (
        <label key={name} title={explained}>
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            onChange={({ target }) =>
              onChange(names.filter((one) => (one === name ? target.checked : chosen.includes(one))))
            }
          />
          {text}
        </label>
      ))}
    </fieldset>
  );
}

/** Shows fields side by side where the screen is wide enough. */
export function Fields({ children }: { children: ReactNode }) {
  return <div className={style.fields}>{children}</div>;
}
