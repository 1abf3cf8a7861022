/** The dialogs that change the fields of a door, or add a door at a position on the map. */
import { useMutation } from "@tanstack/react-query";
import type { Tag } from "canvassing-client/api";
import { type ChangeEvent, type ReactNode, useRef, useState } from "react";
import * as limits from "../../../shared/limits.ts";
import { randomUuid } from "../api/once.ts";
import { useDraft, useDrafts } from "../drafts/draft.tsx";
import { Field, Fields, Input } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import type { Position } from "./distance.ts";
import { type Door, type DoorFields, targetOf, titleOf } from "./door.ts";
import { recordOf } from "./door-view.tsx";
import style from "./field.module.css";
import { usePhone } from "./phone.ts";
import { nearest } from "./street.ts";

const people = ["name", "phoneNumber", "secondaryPhoneNumber", "emailAddress"] as const;
const places = ["address1", "address2", "city", "state", "zip"] as const;
type Name = (typeof people)[number] | (typeof places)[number];

const labels: Readonly<Record<Name, string>> = {
  name: "Name",
  phoneNumber: "Phone",
  secondaryPhoneNumber: "Second phone",
  emailAddress: "E-mail",
  address1: "Street and number",
  address2: "Unit",
  city: "City",
  state: "State",
  zip: "Postal code",
};
/** The on-screen keyboards that phones show for these fields. */
const keyboards: Partial<Record<Name, "tel" | "email">> = {
  phoneNumber: "tel",
  secondaryPhoneNumber: "tel",
  emailAddress: "email",
};
/** Maximum characters of a text that is kept as a draft. No limit of the service for these texts is larger. */
const LONGEST = limits.addressLine;

/** The empty value and the limit of the draft of a new door's position. The dialog stores this draft, but has no input for it. */
const NO_POSITION = ["", LONGEST] as const;

type Texts = Readonly<Record<Name, string>>;

const textsOf = ({ address, ...door }: DoorFields): Texts => ({
  name: door.name ?? "",
  phoneNumber: door.phoneNumber ?? "",
  secondaryPhoneNumber: door.secondaryPhoneNumber ?? "",
  emailAddress: door.emailAddress ?? "",
  address1: address?.address1 ?? "",
  address2: address?.address2 ?? "",
  city: address?.city ?? "",
  state: address?.state ?? "",
  zip: address?.zip ?? "",
});

/** Returns the fields that the user has changed, as the API takes them. If a part of the address has changed, returns the whole address. */
export function fieldsToSend(before: Texts, now: Texts): Record<string, unknown> {
  const differs = (name: Name): boolean => before[name].trim() !== now[name].trim();
  const value = (name: Name): string | null => now[name].trim() || null;
  const changed = people.filter(differs).map((name) => [name, value(name)]);
  const hasAddress = places.some((name) => value(name) !== null);
  const address = places.some(differs)
    ? { address: hasAddress ? Object.fromEntries(places.map((name) => [name, value(name)])) : null }
    : {};
  return { ...Object.fromEntries(changed), ...address };
}

interface FieldsProps {
  readonly title: string;
  readonly record: string;
  readonly texts: Texts;
  /** Called before each change of a text by the user. */
  readonly onChange?: () => void;
  readonly onClose: () => void;
  readonly onSave: (fields: Record<string, unknown>) => Promise<unknown>;
  readonly children?: ReactNode;
}

function FieldsDialog({ title, record, texts, onChange, onClose, onSave, children }: FieldsProps) {
  const fields = [...people, ...places].map((name) => [name, [texts[name], LONGEST] as const] as const);
  const draft = useDraft<string>(
    { record, title, path: "/field" },
    { ...Object.fromEntries(fields), position: NO_POSITION },
  );
  const save = useMutation({
    networkMode: "always",
    mutationFn: () => {
      const now = Object.fromEntries([...people, ...places].map((name) => [name, draft.text(name)]));
      return onSave(fieldsToSend(texts, { ...texts, ...now }));
    },
    onSuccess: () => {
      draft.discard();
      onClose();
    },
  });
  const input = (name: Name, required = false) => {
    const { value, onChange: change } = draft.control(name);
    const onInput = (event: ChangeEvent<HTMLInputElement>): void => {
      onChange?.();
      change(event);
    };
    const attributes = {
      required,
      inputMode: keyboards[name],
      maxLength: limits.addressLine,
      value,
      onChange: onInput,
    };
    return (
      <Field key={name} label={labels[name]}>
        <Input {...attributes} />
      </Field>
    );
  };
  const hasAddress = places.some((name) => draft.text(name).trim() !== "");
  return (
    <FormDialog title={title} submit="Save" request={save} draft={draft} onClose={onClose}>
      {people.map((name) => input(name))}
      {input("address1", hasAddress)}
      {input("address2")}
      <Fields>{(["city", "state", "zip"] as const).map((name) => input(name, hasAddress))}</Fields>
      {children}
    </FormDialog>
  );
}

export function EditDoor({ door, tags, onClose }: { door: Door; tags: readonly Tag[]; onClose: () => void }) {
  const phone = usePhone();
  const [chosen, setChosen] = useState<readonly number[]>(door.tags);
  const save = async (fields: Record<string, unknown>): Promise<void> => {
    const target = targetOf(door);
    const base = door.version === undefined ? {} : { baseVersion: door.version };
    if (Object.keys(fields).length > 0) await phone.act({ type: "prospect.update", ...target, ...base, fields });
    if (chosen.join() !== door.tags.join()) {
      await phone.act({ type: "prospect.tags", ...target, ...base, fields: { tagIds: [...chosen] } });
    }
  };
  return (
    <FieldsDialog
      title={`Edit ${titleOf(door)}`}
      record={`edit ${recordOf(door)}`}
      texts={textsOf(door)}
      onClose={onClose}
      onSave={save}
    >
      <fieldset className={style.tags}>
        <legend>Tags</legend>
        {tags.map(({ id, value }) => (
          <label key={id}>
            <input
              type="checkbox"
              checked={chosen.includes(id)}
              onChange={({ target }) =>
                setChosen(target.checked ? [...chosen, id] : chosen.filter((tag) => tag !== id))
              }
            />
            {value}
          </label>
        ))}
      </fieldset>
    </FieldsDialog>
  );
}

interface NewDoorProps {
  /** Where the user has pressed on the map. */
  readonly pressed: Position;
  readonly doors: readonly Door[];
  readonly onClose: () => void;
  readonly onMade: (key: string) => void;
}

export function NewDoor({ pressed, doors, onClose, onMade }: NewDoorProps) {
  const phone = usePhone();
  const [title, record] = ["New door", "new door"];
  const kept = useDraft({ record, title, path: "/field" }, { position: NO_POSITION });
  const isBegun = useDrafts().all.some((draft) => draft.record === record && draft.field !== "position");
  // A draft belongs to the position at which the user has begun it. A later press at another position must not move the draft there.
  const [lng = 0, lat = 0] = isBegun ? kept.text("position").split(",").map(Number) : pressed;
  // A second tap on the button must not make a second door.
  const made = useRef<Promise<string>>(undefined);
  const make = async (fields: Record<string, unknown>): Promise<string> => {
    const clientRecordId = randomUuid();
    await phone.act({ type: "prospect.create", clientRecordId, fields: { ...fields, lat, lng } });
    return `prospects/${clientRecordId}`;
  };
  // The dialog proposes the city, state and postal code of the nearest door.
  const address = nearest(doors, [lng, lat])?.stop.address ?? null;
  const empty = { name: null, phoneNumber: null, secondaryPhoneNumber: null, emailAddress: null };
  const texts = { ...textsOf({ ...empty, address }), address1: "", address2: "" };
  return (
    <FieldsDialog
      title={title}
      record={record}
      texts={texts}
      onChange={() => {
        if (!isBegun) kept.change("position", pressed.join());
      }}
      onClose={onClose}
      onSave={async (fields) => {
        made.current ??= make(fields).catch((error: unknown) => {
          made.current = undefined;
          throw error;
        });
        onMade(await made.current);
      }}
    >
      {(lng !== pressed[0] || lat !== pressed[1]) && (
        <p role="status">You have begun this draft at another place on the map. Save adds the door there.</p>
      )}
    </FieldsDialog>
  );
}
