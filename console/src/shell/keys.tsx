/** The keyboard shortcuts of all pages, and the dialog that lists them. */
import { useEffect, useState } from "react";
import { Button } from "../ui/button.tsx";
import { Modal } from "../ui/modal.tsx";

const keys = [
  ["/", "Search"],
  ["j", "Next row of the table"],
  ["k", "Row before"],
  ["Enter", "Open the row"],
  ["Escape", "Close the panel or the dialog"],
  ["?", "Show these keys"],
] as const;

/** The setting on this device that switches off keys of one character, because dictation software may press them (WCAG 2.1.4). */
const NAME = "canvassing-keys";
const OFF = "off";

export function Keys() {
  const [isOpen, setOpen] = useState(false);
  const [isOn, setOn] = useState(() => localStorage.getItem(NAME) !== OFF);
  useEffect(() => {
    if (!isOn) return;
    const press = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isElsewhere(event)) return;
      if (event.key === "/") document.querySelector<HTMLElement>("input[type=search]")?.focus();
      else if (event.key === "j") moveTo(1);
      else if (event.key === "k") moveTo(-1);
      else if (event.key === "?") setOpen(true);
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [isOn]);
  const change = (isWanted: boolean): void => {
    if (isWanted) localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, OFF);
    setOn(isWanted);
  };
  return (
    <>
      <Button kind="quiet" onClick={() => setOpen(true)}>
        Keys
      </Button>
      {isOpen && (
        <Modal title="Keys" onClose={() => setOpen(false)}>
          <div className="stack inside">
            <ul className="stack tight list">
              {keys.map(([key, text]) => (
                <li key={key} className="row between">
                  {text} <kbd>{key}</kbd>
                </li>
              ))}
            </ul>
            <label className="row">
              <input type="checkbox" checked={isOn} onChange={({ target }) => change(target.checked)} />
              Use the keys of one character
            </label>
          </div>
        </Modal>
      )}
    </>
  );
}

/** True while the user types a text, or while a dialog covers the page. */
const isElsewhere = ({ target }: KeyboardEvent): boolean =>
  document.querySelector("dialog[open]") !== null ||
  (target instanceof Element && target.closest("input:not([type=checkbox]), textarea, select") !== null);

/** Moves the focus to the next or the previous row. If a panel is open, also opens the panel of the new row. */
function moveTo(step: 1 | -1): void {
  const openers = [...document.querySelectorAll<HTMLElement>("main tr .open")];
  const find = (selector: string): number => openers.findIndex((one) => one.closest(selector) !== null);
  const [focused, current] = [find("tr:focus-within"), find("tr[data-current=true]")];
  // The row with the focus counts first. After a fast second press, the panel still shows the row before it.
  const at = focused === -1 ? current : focused;
  const next = openers[at === -1 ? 0 : at + step];
  next?.focus();
  if (current !== -1) next?.click();
}
