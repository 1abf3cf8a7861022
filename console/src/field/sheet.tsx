/** The sheet at the lower edge of the field mode, at one of three heights. The user drags it, or presses its handle. */
import { type PointerEvent, type ReactNode, useRef, useState } from "react";
import style from "./sheet.module.css";

export type Height = "peek" | "half" | "full";
const heights: readonly Height[] = ["peek", "half", "full"];
/** Pixels. A shorter movement of the handle is a press and no drag. */
const DRAG_PX = 12;

interface SheetProps {
  readonly label: string;
  readonly height: Height;
  readonly onHeight: (height: Height) => void;
  readonly children: ReactNode;
}

export function Sheet({ label, height, onHeight, children }: SheetProps) {
  const from = useRef<number>(undefined);
  const isDragged = useRef(false);
  const [draggedPx, setDragged] = useState(0);
  const step = (by: number): void =>
    onHeight(heights[Math.max(0, Math.min(2, heights.indexOf(height) + by))] ?? height);
  const drag = (event: PointerEvent<HTMLButtonElement>): void => {
    if (from.current !== undefined) setDragged(from.current - event.clientY);
  };
  const end = (): void => {
    isDragged.current = Math.abs(draggedPx) >= DRAG_PX;
    if (isDragged.current)
      step(Math.abs(draggedPx) > innerHeight / 3 ? 2 * Math.sign(draggedPx) : Math.sign(draggedPx));
    from.current = undefined;
    setDragged(0);
  };
  return (
    <section className={style.sheet} data-height={height} aria-label={label} style={{ translate: `0 ${-draggedPx}px` }}>
      <button
        type="button"
        className={style.handle}
        aria-label={height === "full" ? "Make the sheet smaller" : "Make the sheet larger"}
        aria-expanded={height !== "peek"}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          from.current = event.clientY;
        }}
        onPointerMove={drag}
        onPointerUp={end}
        onPointerCancel={end}
        onClick={() => {
          // The browser also sends a click after a drag. It must not change the height again.
          if (!isDragged.current) onHeight(height === "full" ? "peek" : height === "peek" ? "half" : "full");
        }}
      />
      <div className={`${style.content} stack`}>{children}</div>
    </section>
  );
}
