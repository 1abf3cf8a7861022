/** Selects the prospects inside an area: one that the user draws with a pointer, or a frame that the user moves by the keyboard. */
import { useMutation } from "@tanstack/react-query";
import type { Map as MapLibre } from "maplibre-gl";
import { type KeyboardEvent, type RefObject, useEffect, useEffectEvent, useId, useRef, useState } from "react";
import { answer, api } from "../api/client.ts";
import type { Filter } from "../prospects/filter.ts";
import { LARGEST_PAGE, type PlacedFilter, useProspects } from "../prospects/queries.ts";
import { Button } from "../ui/button.tsx";
import { notifyDone, notifyFailed } from "../ui/notices.tsx";
import { amount } from "../ui/text.ts";
import { drawFreehand } from "./draw.ts";
import style from "./frame.module.css";
import { boxOf, useView } from "./view.ts";

/** Maximum number of ids that a bulk change accepts. */
const MOST = 10_000;

interface LassoProps {
  readonly map: MapLibre;
  readonly filter: Filter;
  readonly isDrawing: boolean;
  readonly setDrawing: (isDrawing: boolean) => void;
  readonly button: RefObject<HTMLButtonElement | null>;
  /** Called with the area that the user has drawn, and with undefined if the area selects nothing. */
  readonly onArea: (ring: readonly number[][] | undefined) => void;
  readonly onSelect: (ids: readonly number[]) => void;
}

/** The button that begins and ends the drawing with a pointer. */
export function Lasso({ map, filter, isDrawing, setDrawing, button, onArea, onSelect }: LassoProps) {
  const find = useMutation({
    mutationFn: (polygon: number[][]) => idsInside(filter, polygon),
    onSuccess: (ids) => {
      if (ids.length > 0) return onSelect(ids);
      onArea(undefined);
      notifyDone("No prospect is inside this area.");
    },
    onError: (error) => {
      onArea(undefined);
      notifyFailed(error);
    },
  });
  const { mutate } = find;
  const drawn = useEffectEvent(onArea);
  useEffect(() => {
    if (!isDrawing) return;
    return drawFreehand(map, (polygon) => {
      setDrawing(false);
      drawn(polygon);
      mutate(polygon);
    });
  }, [isDrawing, setDrawing, map, mutate]);
  return (
    <Button ref={button} aria-pressed={isDrawing} disabled={find.isPending} onClick={() => setDrawing(!isDrawing)}>
      {isDrawing ? "Stop selecting" : "Select an area"}
    </Button>
  );
}

/**
 * Returns the ids of the prospects inside the polygon that match the filter. The ids come from the service, because the map may show only
 * clusters.
 */
async function idsInside(filter: Filter, polygon: number[][]): Promise<number[]> {
  const { territoryId, ...rest } = filter;
  const search = { ...rest, polygon, ...(territoryId !== undefined && { territoryId: Number(territoryId) }) };
  const ids: number[] = [];
  for (let page = 1; ; page += 1) {
    const body = { filter: search, page, pageSize: LARGEST_PAGE };
    const { items, total } = await answer(api.POST("/api/prospects/search", { body }));
    if (total > MOST)
      throw new Error(`${amount(total, "prospect")} are inside. Select at most ${amount(MOST, "prospect")}.`);
    ids.push(...items.map(({ id }) => id));
    if (items.length === 0 || ids.length >= total) return ids;
  }
}

/** Pixels by which a press of an arrow key moves the frame or changes its size. */
const STEP_PX = 20;
const SMALLEST_PX = 20;
/** The box of the frame is rounded to 1/1 000 000 of a degree, about a decimetre. */
const STEPS = 1_000_000;
/** Milliseconds without a key press after which the prospects in the frame are counted. */
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

/** A frame on the map that selects the prospects inside it. It is for users who cannot draw with a pointer. */
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
