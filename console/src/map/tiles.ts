/** Shows vector tiles of the service on the map, and loads them again when their records may have changed. */
import { AJAXError, type MapLayerMouseEvent, type Map as MapLibre } from "maplibre-gl";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { renewSession, signIn } from "../api/client.ts";
import style from "./canvas.module.css";
import { isRemoved, type TileLayers } from "./layers.ts";

export interface Tiles {
  /** The URL with `{z}`, `{x}` and `{y}`. */
  readonly url: string;
  /** A new version makes the map load all tiles again. The service answers 304 for each tile that is still the same. */
  readonly version: number;
}

export interface TileState {
  /** The last error, if tiles are still missing after all retries. Undefined at first, and again when all visible tiles are loaded. */
  readonly fault: Error | undefined;
  readonly retry: () => void;
  /** True when the map has shown all visible tiles once. */
  readonly isShown: boolean;
}

interface TileEvents {
  readonly click: (event: MapLayerMouseEvent) => void;
  /** Called with the source each time the map has drawn its tiles, and with undefined when the source is removed. */
  readonly drawn?: (source: string | undefined) => void;
}

/** After a failure, the tiles are loaded again this many times before the page says that some are missing. */
const RETRIES = 2;
const FIRST_PAUSE_MS = 1_000;
const NO_TRIES = { key: "", count: 0, round: 0 };

/**
 * Shows the tiles on the map. Old tiles stay visible until newer ones are loaded. Always pass the same object as `layers`, because the hook
 * ignores a change of it.
 */
export function useTiles(
  map: MapLibre | undefined,
  tiles: Tiles | undefined,
  layers: TileLayers,
  events: TileEvents,
): TileState {
  const shown = useRef<AddedTiles>(undefined);
  const [isShown, setShown] = useState(false);
  const [tries, setTries] = useState(NO_TRIES);
  const [fault, setFault] = useState<Error>();
  const key = tiles === undefined ? "" : `${tiles.url} ${tiles.version}`;
  const { count, round } = tries.key === key ? tries : NO_TRIES;
  const click = useEffectEvent(events.click);
  const drawn = useEffectEvent((source: string | undefined) => events.drawn?.(source));

  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` contains the URL and the version of `tiles`
  useEffect(() => {
    if (map === undefined || isRemoved(map) || tiles === undefined) return;
    let [isCurrent, timer] = [true, 0];
    const again = () => isCurrent && setTries({ key, count: count + 1, round });
    const failed = async (error: Error): Promise<void> => {
      if (!isCurrent) return;
      if (count >= RETRIES) setFault(error);
      else if (!(error instanceof AJAXError) || error.status !== 401) {
        timer = window.setTimeout(again, FIRST_PAUSE_MS * 2 ** count);
      } else await signedInAgain().catch(setFault);
    };
    const signedInAgain = async (): Promise<void> => {
      if (await renewSession()) again();
      else await signIn();
    };
    const loaded = () => {
      const before = shown.current;
      shown.current = added;
      before?.remove();
      setFault(undefined);
      setShown(true);
    };
    const added = addTiles(map, tiles.url, layers, {
      ...{ failed, loaded },
      click: (event) => click(event),
      drawn: (source) => drawn(source),
    });
    return () => {
      isCurrent = false;
      clearTimeout(timer);
      if (shown.current !== added) added.remove();
    };
  }, [map, key, count, round]);

  return { fault, isShown, retry: () => setTries({ key, count: 0, round: round + 1 }) };
}

interface Events extends Required<TileEvents> {
  /** Called once, with the first failure. */
  readonly failed: (error: Error) => void;
  /** Called once, when all visible tiles are loaded. */
  readonly loaded: () => void;
}

interface AddedTiles {
  readonly remove: () => void;
}

let sources = 0;

/**
 * Adds a source with its layers. If the URL or the version changes, a new source replaces the old one. Changing a source of MapLibre in
 * place is not safe: a tile that is loading would keep its old content, and a tile that has failed would never be loaded again.
 */
function addTiles(map: MapLibre, url: string, { layersOf, below, clicked }: TileLayers, events: Events): AddedTiles {
  sources += 1;
  const source = `tiles-${sources}`;
  map.addSource(source, { type: "vector", tiles: [url] });
  const layers = layersOf(source);
  for (const layer of layers) map.addLayer(layer, below);
  const ids = layers.map(({ id }) => id);
  const clickable = clicked === undefined ? ids : [...ids, clicked];
  let isSettled = false;
  const look = () => {
    if (isSettled || !map.isSourceLoaded(source)) return;
    isSettled = true;
    events.loaded();
    events.drawn(source);
  };
  let hasFailed = false;
  const canvas = map.getCanvas();
  const listening = [
    map.on("sourcedata", look),
    map.on("idle", () => (isSettled ? events.drawn(source) : look())),
    map.on("error", (event) => {
      if (hasFailed || !("sourceId" in event) || event.sourceId !== source) return;
      hasFailed = true;
      isSettled = true;
      events.failed(event.error instanceof Error ? event.error : new Error(event.error.message));
    }),
    map.on("click", clickable, events.click),
    map.on("mouseenter", clickable, () => canvas.classList.add(style.clickable ?? "")),
    map.on("mouseleave", clickable, () => canvas.classList.remove(style.clickable ?? "")),
  ];
  return {
    remove: () => {
      for (const { unsubscribe } of listening) unsubscribe();
      if (isRemoved(map) || map.getSource(source) === undefined) return;
      for (const id of ids) map.removeLayer(id);
      map.removeSource(source);
      events.drawn(undefined);
    },
  };
}

/** Returns the id of the record that was clicked. Returns undefined for a cluster. */
export function idOf({ features: [feature] = [] }: MapLayerMouseEvent): number | undefined {
  const id: unknown = feature?.properties.id;
  return typeof id === "number" ? id : undefined;
}
