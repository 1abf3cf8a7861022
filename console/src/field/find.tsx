/** Finds a door on this device by its address, name, phone number, e-mail address or notes. */
import { useDeferredValue, useMemo, useState } from "react";
import { searchable } from "../../../shared/caseless.ts";
import * as limits from "../../../shared/limits.ts";
import { Field, Input } from "../ui/field.tsx";
import { Modal } from "../ui/modal.tsx";
import { type Door, titleOf } from "./door.ts";
import style from "./field.module.css";
import { DoorList, type DoorsProps, nearestFirst } from "./today.tsx";

export function Find({ doors, from, onOpen, onClose }: DoorsProps) {
  const [typed, setTyped] = useState("");
  // React shows each letter at once, and searches in up to 20 000 doors when it has the time.
  const query = searchable(useDeferredValue(typed), limits.search);
  const found = useMemo(
    () => (query === "" ? [] : nearestFirst(doors.filter(matching(query.split(" "))), from)),
    [doors, from, query],
  );
  return (
    <Modal title="Find a door" onClose={onClose}>
      <div className={`stack tight inside ${style.large}`}>
        <Field label="Address, name, phone, e-mail or note">
          <Input
            // With this attribute, the browser focuses the element when it opens the dialog. React's `autoFocus` would focus it too early.
            ref={(element) => element?.setAttribute("autofocus", "")}
            type="search"
            maxLength={limits.search}
            value={typed}
            onChange={({ target }) => setTyped(target.value)}
          />
        </Field>
        <p role="status">{query !== "" && found.length === 0 && "No door on this device has all these words."}</p>
        <DoorList doors={found} onOpen={onOpen} />
      </div>
    </Modal>
  );
}

/** Returns a function that tests a door: each of the typed `words` must begin some word in the fields or notes of the door. */
const matching = (words: readonly string[]) => (door: Door) => {
  const { name, address, phoneNumber, secondaryPhoneNumber, emailAddress, notes } = door;
  const phones = [phoneNumber, secondaryPhoneNumber].flatMap((phone) => [phone, phone?.replace(/\D/g, "")]);
  const text = [titleOf(door), address?.city, name, emailAddress, ...phones, ...notes.map(({ body }) => body)].join(
    " ",
  );
  const form = ` ${searchable(text, Number.POSITIVE_INFINITY)}`;
  return words.every((word) => form.includes(` ${word}`));
};
