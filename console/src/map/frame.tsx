/** A frame on the map that the user moves by the keyboard. It selects the prospects inside, for users who cannot draw with a pointer. */
import type { Map as MapLibre } from "maplibre-gl";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import type { Filter } from "../prospects/filter.ts";
import { type PlacedFilter, useProspects } from "../prospects/queries.ts";
import { amount } from "../ui/text.ts";
import style from "./frame.module.css";
import { boxOf, useView } from "./view.ts";

/** Pixels by which a press of an arrow key moves the frame or changes its size. */
const STEP_PX = 20;
const SMALLEST_PX = 20;
/** The box of the frame is rounded to 1/1 000 000 of a degree, about a decimetre. */
const STEPS = 1_000_000;
/** The prospects are counted when the user has pressed no key for this time. */
const PAUSE_MS = 250;

interface Rectangle {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

const arrows: Readonly<Record<string, readonly [right: number, down: number]>> = {
  ArrowLeft: [-STEP_PX, 0],
  ArrowRight: [STEP_PX, 0],
  ArrowUp: [0, -STEP_PX],
  ArrowDown: [0, STEP_PX],
};
const zooms: Readonly<Record<string, number>> = { "+": 1, "=": 1, "-": -1 };

interface FrameProps {
  readonly map: MapLibre;
  readonly filter: Filter;
  readonly onSelect: (filter: PlacedFilter) => void;
  readonly onCancel: () => void;
}

export function Frame({ map, filter, onSelect, onCancel }: FrameProps) {
  const frame = useRef<HTMLDivElement>(null);
  const id = useId();
  const [rectangle, setRectangle] = useState(() => middleOf(map));
  // The box depends on the visible part of the map, so the component must render again after each movement of the map.
  useView(map);
  const { left, top, width, height } = rectangle;
  const box = boxOf(map.unproject([left, top + height]), map.unproject([left + width, top]), STEPS);
  const counted = useProspects({ ...filter, bbox: useSettled(box) }, 1, 1);
  useEffect(() => frame.current?.focus(), []);

  const press = (event: KeyboardEvent): void => {
    const [right, down] = arrows[event.key] ?? [0, 0];
    const zoom = zooms[event.key];
    if (event.key === "Enter") onSelect({ ...filter, bbox: box });
    else if (event.key === "Escape") onCancel();
    else if (zoom !== undefined) map.zoomTo(map.getZoom() + zoom, { animate: false });
    else if (right === 0 && down === 0) return;
    else if (event.shiftKey) setRectangle(resized(map, rectangle, right, down));
    else {
      const moved = placed(map, { ...rectangle, left: left + right, top: top + down });
      setRectangle(moved);
      // The frame stays inside the map. If it reaches the edge, the map moves by the rest of the step.
      map.panBy([left + right - moved.left, top + down - moved.top], { animate: false });
    }
    event.preventDefault();
  };
  return (
    <>
      <p id={id} className={`${style.help} card`}>
        <span className={style.touch}>Draw around the prospects with one finger.</span>
        <span className={style.keys}>
          Hold the mouse button and draw around the prospects. Or use the keyboard: the arrow keys move the frame, with
          Shift they change its size, + and − zoom the map, Enter selects the prospects inside, and Escape ends the
          selection.
        </span>
      </p>
      <div
        ref={frame}
        className={style.frame}
        role="application"
        aria-label="Frame around prospects"
        aria-describedby={id}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: with this role, screen readers pass the arrow keys to the frame
        tabIndex={0}
        style={rectangle}
        onKeyDown={press}
      >
        <span role="status">{counted.data !== undefined && amount(counted.data.total, "prospect")}</span>
      </div>
    </>
  );
}

const sizeOf = (map: MapLibre): readonly [width: number, height: number] => {
  const { clientWidth, clientHeight } = map.getContainer();
  return [clientWidth, clientHeight];
};

function middleOf(map: MapLibre): Rectangle {
  const [width, height] = sizeOf(map);
  return { left: width / 4, top: height / 4, width: width / 2, height: height / 2 };
}

const within = (least: number, value: number, most: number): number => Math.max(least, Math.min(value, most));

/** Moves a rectangle that lies partly outside the map to the nearest place inside the map. */
function placed(map: MapLibre, { left, top, width, height }: Rectangle): Rectangle {
  const [mapWidth, mapHeight] = sizeOf(map);
  return { left: within(0, left, mapWidth - width), top: within(0, top, mapHeight - height), width, height };
}

/** Moves the right edge by `right` pixels and the lower edge by `down` pixels, as far as the map and `SMALLEST_PX` permit. */
function resized(map: MapLibre, { left, top, width, height }: Rectangle, right: number, down: number): Rectangle {
  const [mapWidth, mapHeight] = sizeOf(map);
  return {
    left,
    top,
    width: within(SMALLEST_PX, width + right, mapWidth - left),
    height: within(SMALLEST_PX, height + down, mapHeight - top),
  };
}

/** Returns `text` with a delay: returns a new text only when it has stayed the same for `PAUSE_MS`. Until then, returns the old text. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
