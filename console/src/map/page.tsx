/** Prospects on the map, with the same filters as the table, and a table of the visible ones below it. */
import type { Me } from "canvassing-client/api";
import type { Map as MapLibre } from "maplibre-gl";
import { useCallback, useEffect, useMemo, useState } from "react";
import { Link } from "wouter";
import { mayManage, useMe, useStatuses, useTerritories } from "../api/reference.ts";
import { BulkDialog, type Target } from "../prospects/bulk-dialog.tsx";
import { Drawer } from "../prospects/drawer.tsx";
import { type FilterState, useFilter, withFilter } from "../prospects/filter.ts";
import { FilterBar } from "../prospects/filter-bar.tsx";
import { messageOf } from "../ui/states.tsx";
import { amount } from "../ui/text.ts";
import { Canvas } from "./canvas.tsx";
import { boundsOf, clusterFeatures, pinFeatures, territoryFeatures } from "./features.ts";
import { Lasso } from "./lasso.tsx";
import { addProspectLayers, addTerritoryLabels, addTerritoryLayers, markOpen, setData } from "./layers.ts";
import style from "./page.module.css";
import { MOST_PINS, useClusters, useCount, usePins, type View } from "./queries.ts";
import { useView } from "./view.ts";

export function MapPage() {
  const me = useMe().data;
  const state = useFilter();
  return me === undefined ? null : <MapOf me={me} state={state} />;
}

function MapOf({ me, state }: { me: Me; state: FilterState }) {
  const { filter, change, parameters } = state;
  const [map, setMap] = useState<MapLibre>();
  const view = useView(map);
  const shown = useShown(state, view);
  const [target, setTarget] = useState<Target>();
  const open = Number(parameters.get("prospect") ?? Number.NaN);
  const territories = useTerritories().data;
  const onReady = useCallback((made: MapLibre) => {
    addTerritoryLayers(made);
    addProspectLayers(made);
    addTerritoryLabels(made);
    setMap(made);
  }, []);

  useEffect(() => {
    if (map !== undefined && shown.features !== undefined) setData(map, "prospects", shown.features);
  }, [map, shown.features]);
  useEffect(() => {
    if (map !== undefined && territories !== undefined) setData(map, "territories", territoryFeatures(territories));
  }, [map, territories]);
  useEffect(() => {
    if (map !== undefined) markOpen(map, Number.isInteger(open) ? open : undefined);
  }, [map, open]);
  useClicks(map, (id) => change({ prospect: String(id) }));

  return (
    <div className={style.page}>
      <div className={style.main}>
        <header className={style.head}>
          <div className={style.title}>
            <h1>Map</h1>
            <p aria-live="polite" data-count={shown.onMap}>
              {shown.error === null ? shown.text : messageOf(shown.error)}{" "}
              <Link href={withFilter("/prospects", filter)}>Show them as a table</Link>
            </p>
          </div>
          {map !== undefined && mayManage(me) && (
            <Lasso map={map} filter={filter} onSelect={(ids) => setTarget({ ids })} />
          )}
        </header>
        <FilterBar me={me} state={state} />
        <div className={style.map}>
          <Canvas label="Map of prospects" bounds={shown.bounds} onReady={onReady} />
        </div>
      </div>
      {Number.isInteger(open) && <Drawer id={open} onClose={() => change({ prospect: undefined })} />}
      {target !== undefined && (
        <BulkDialog target={target} onClose={() => setTarget(undefined)} onStarted={() => setTarget(undefined)} />
      )}
    </div>
  );
}

/** What the map shows, and how the page says it. */
function useShown({ filter }: FilterState, view: View | undefined) {
  const statuses = useStatuses().data;
  const count = useCount(filter);
  const isFew = (count.data ?? 0) <= MOST_PINS;
  const pins = usePins(filter, count.data !== undefined && isFew);
  const clusters = useClusters(filter, view, count.data !== undefined && !isFew);
  const features = useMemo(() => {
    if (isFew) return pins.data && pinFeatures(pins.data);
    return clusters.data && statuses && clusterFeatures(clusters.data.items, statuses);
  }, [isFew, pins.data, clusters.data, statuses]);
  const bounds = useMemo(() => boundsOf((pins.data ?? []).map(({ lng, lat }) => [lng, lat] as const)), [pins.data]);
  const total = count.data;
  const onMap = isFew ? pins.data?.length : clusters.data?.total;
  const unmapped = total === undefined || onMap === undefined || !isFew ? 0 : total - onMap;
  return {
    features,
    bounds: isFew ? bounds : undefined,
    onMap,
    error: count.error ?? pins.error ?? clusters.error,
    text:
      onMap === undefined
        ? "Loading the prospects …"
        : `${amount(onMap, "prospect")} ${isFew ? "on the map" : "in this part of the map"}${
            unmapped > 0 ? `, ${unmapped} without a place` : ""
          }.`,
  };
}

/** A click on a prospect opens it, and a click on a cluster shows its part of the map. */
function useClicks(map: MapLibre | undefined, open: (id: number) => void): void {
  useEffect(() => {
    if (map === undefined) return;
    const click = map.on("click", "prospects", ({ features: [feature] = [], lngLat }) => {
      const id: unknown = feature?.properties.id;
      if (typeof id === "number") open(id);
      else map.easeTo({ center: lngLat, zoom: map.getZoom() + 2 });
    });
    const enter = map.on("mouseenter", "prospects", () => map.getCanvas().classList.add(style.pointer ?? ""));
    const leave = map.on("mouseleave", "prospects", () => map.getCanvas().classList.remove(style.pointer ?? ""));
    return () => {
      for (const { unsubscribe } of [click, enter, leave]) unsubscribe();
    };
  }, [map, open]);
}
