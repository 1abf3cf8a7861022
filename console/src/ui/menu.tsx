/**
 * A list from which the user chooses one entry. It is for choices that are saved at once: in the browser's element `select`, each arrow key
 * would already choose. Here, arrow keys only move through the open list, and Enter, a space or a click chooses.
 */
import { type KeyboardEvent, type RefObject, use, useEffect, useId, useRef, useState } from "react";
import { Dot, tint } from "./badge.tsx";
import { FieldContext } from "./field.tsx";
import style from "./menu.module.css";

export interface Choice {
  readonly value: number | null;
  readonly text: string;
  readonly color?: string;
}

interface MenuProps {
  readonly choices: readonly Choice[];
  readonly value: number | null;
  readonly button: RefObject<HTMLButtonElement | null>;
  readonly onChoose: (value: number | null) => void;
}

/** Maximum milliseconds between two typed letters that are together the beginning of the entry to find. */
const PAUSE_MS = 700;

export function Menu({ choices, value, button, onChoose }: MenuProps) {
  const listId = useId();
  const [active, setActive] = useState<number>();
  const typed = useRef({ text: "", at: 0 });
  const isOpen = active !== undefined;
  const current = choices.findIndex((choice) => choice.value === value);
  const chosen = choices[current];
  const idOf = (index: number): string => `${listId}-${index}`;
  const open = (): void => setActive(Math.max(current, 0));
  const close = (): void => setActive(undefined);
  const choose = (index: number): void => {
    close();
    const choice = choices[index];
    if (choice !== undefined && choice.value !== value) onChoose(choice.value);
  };
  useEffect(() => {
    if (active !== undefined) document.getElementById(`${listId}-${active}`)?.scrollIntoView({ block: "nearest" });
  }, [active, listId]);

  const find = (key: string, at: number): number => {
    typed.current = { text: (at - typed.current.at < PAUSE_MS ? typed.current.text : "") + key.toLowerCase(), at };
    return choices.findIndex(({ text }) => text.toLowerCase().startsWith(typed.current.text));
  };
  const press = (event: KeyboardEvent): void => {
    const { key, timeStamp } = event;
    if (key === "Tab" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (active === undefined) {
      if (key === "ArrowDown" || key === "ArrowUp" || key === "Enter" || key === " ") open();
      else return;
    } else if (key === "Escape") close();
    else if (key === "Enter" || key === " ") choose(active);
    else if (key === "ArrowDown") setActive(Math.min(active + 1, choices.length - 1));
    else if (key === "ArrowUp") setActive(Math.max(active - 1, 0));
    else if (key === "Home") setActive(0);
    else if (key === "End") setActive(choices.length - 1);
    else if (key.length === 1) {
      const found = find(key, timeStamp);
      if (found >= 0) setActive(found);
    }
    event.preventDefault();
    // The panel around the list must not close when Escape closes the list.
    event.stopPropagation();
  };
  return (
    <div className={style.menu}>
      <button
        ref={button}
        type="button"
        role="combobox"
        className={style.button}
        {...use(FieldContext)}
        aria-haspopup="listbox"
        aria-expanded={isOpen}
        aria-controls={isOpen ? listId : undefined}
        aria-activedescendant={isOpen ? idOf(active) : undefined}
        onClick={isOpen ? close : open}
        onBlur={close}
        onKeyDown={press}
        style={{ background: chosen?.color && tint(chosen.color) }}
      >
        <Label choice={chosen} />
      </button>
      {isOpen && (
        <div
          id={listId}
          role="listbox"
          aria-label="Choices"
          className={style.list}
          onMouseDown={(event) => event.preventDefault()}
        >
          {choices.map((choice, index) => (
            // biome-ignore lint/a11y/useFocusableInteractive: the button keeps the focus and names the active entry
            // biome-ignore lint/a11y/useKeyWithClickEvents: the button handles the keys
            <div
              key={choice.value}
              id={idOf(index)}
              role="option"
              aria-selected={index === current}
              className={style.choice}
              data-active={index === active}
              onClick={() => choose(index)}
            >
              <Label choice={choice} />
            </div>
          ))}
        </div>
      )}
    </div>
  );
}

function Label({ choice }: { choice: Choice | undefined }) {
  return (
    <>
      {choice?.color !== undefined && <Dot color={choice.color} />}
      <span>{choice?.text}</span>
    </>
  );
}
