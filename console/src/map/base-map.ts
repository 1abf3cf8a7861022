/**
 * The base map below the records: the streets of the deployment's provider, or the console's own outline if there is no provider or if the
 * provider does not answer. The base map is loaded after the records, so that it does not delay them.
 */
import type { LayerSpecification, Map as MapLibre, StyleSpecification } from "maplibre-gl";
import { useEffect, useState } from "react";
import type { Config } from "../api/reference.ts";
import { schemeOf } from "../shell/theme.ts";
import { isRemoved } from "./layers.ts";
import { addOutline, BASE_END } from "./own-style.ts";

/** The ids of the provider's sources and layers begin with this text, so that they differ from those of the console. */
const PREFIX = "base ";
const ANSWER_MS = 10_000;
const RETRY_MS = 60_000;

/**
 * Adds the base map. Returns true while the provider does not answer. Until it answers, the hook tries again each minute, and when the
 * connection is back.
 */
export function useBaseMap(map: MapLibre | undefined, config: Config | undefined): boolean {
  const [isMissing, setMissing] = useState(false);
  const [attempt, setAttempt] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of `attempt` starts the effect again
  useEffect(() => {
    if (map === undefined || config === undefined) return;
    const scheme = schemeOf();
    const outline = (): void => addOutline(map, scheme, config.streets);
    if (config.basemap === null) return outline();
    const end = new AbortController();
    const missing = (): void => {
      if (end.signal.aborted || isRemoved(map)) return;
      outline();
      setMissing(true);
    };
    addStreets(map, config.basemap[scheme], end.signal, { loaded: () => setMissing(false), missing }).catch(missing);
    return () => {
      end.abort();
      if (!isRemoved(map)) removeStreets(map);
    };
  }, [map, config, attempt]);
  useEffect(() => {
    if (!isMissing) return;
    const again = (): void => setAttempt((before) => before + 1);
    const timer = setInterval(again, RETRY_MS);
    addEventListener("online", again);
    return () => {
      clearInterval(timer);
      removeEventListener("online", again);
    };
  }, [isMissing]);
  return isMissing;
}

interface Events {
  /** Called after each tile that has arrived. */
  readonly loaded: () => void;
  /** Called after each failure. */
  readonly missing: () => void;
}

/**
 * Adds the sources and layers of the provider's style. The browser draws the names with its own fonts, so the provider's fonts are not
 * loaded. The background layers are added with the first tile, because without tiles they would only hide the console's outline.
 */
async function addStreets(map: MapLibre, url: string, signal: AbortSignal, { loaded, missing }: Events): Promise<void> {
  const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]) });
  if (!response.ok) throw new Error(`the style of the map: ${response.status}`);
  const { sources, layers, sprite }: StyleSpecification = await response.json();
  if (signal.aborted || isRemoved(map)) return;
  const [first] = layers.filter(({ type }) => type !== "background");
  const listening = [
    map.on("sourcedata", ({ sourceId, tile }) => {
      if (tile?.state !== "loaded" || !sourceId.startsWith(PREFIX)) return;
      const under = first === undefined ? BASE_END : `${PREFIX}${first.id}`;
      for (const layer of layers) if (layer.type === "background") addBelow(map, layer, under);
      loaded();
    }),
    map.on("error", (event) => {
      if ("sourceId" in event && `${event.sourceId}`.startsWith(PREFIX)) missing();
    }),
  ];
  signal.addEventListener("abort", () => {
    for (const { unsubscribe } of listening) unsubscribe();
  });
  if (typeof sprite === "string") map.setSprite(sprite);
  for (const [name, source] of Object.entries(sources)) map.addSource(`${PREFIX}${name}`, source);
  for (const layer of layers) if (layer.type !== "background") addBelow(map, layer, BASE_END);
}

function addBelow(map: MapLibre, layer: LayerSpecification, under: string): void {
  const id = `${PREFIX}${layer.id}`;
  if (map.getLayer(id) !== undefined) return;
  map.addLayer("source" in layer ? { ...layer, id, source: `${PREFIX}${layer.source}` } : { ...layer, id }, under);
}

function removeStreets(map: MapLibre): void {
  const { layers, sources } = map.getStyle();
  for (const { id } of layers) if (id.startsWith(PREFIX)) map.removeLayer(id);
  for (const name of Object.keys(sources)) if (name.startsWith(PREFIX)) map.removeSource(name);
}
