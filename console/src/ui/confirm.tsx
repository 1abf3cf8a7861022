/** A field in which the user types the number of records before a change of many of them. */
import { Field, Input } from "./field.tsx";

/** A change of more records needs the number. */
export const MANY = 500;

interface ConfirmProps {
  readonly count: number;
  readonly typed: string;
  readonly onChange: (typed: string) => void;
}

export function ConfirmCount({ count, typed, onChange }: ConfirmProps) {
  return (
    <Field label={`Type ${count} to confirm`}>
      <Input inputMode="numeric" autoComplete="off" value={typed} onChange={({ target }) => onChange(target.value)} />
    </Field>
  );
}

/** Accepts the number with and without separators, as the page shows it. */
export const isConfirmed = (typed: string, count: number): boolean => typed.replace(/[\s,.]/g, "") === String(count);
