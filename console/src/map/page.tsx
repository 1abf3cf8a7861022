/**
 * The page with the prospects on a map. It has the same filters as the table of prospects. A table beside the map lists the visible
 * prospects.
 */
import type { Me } from "canvassing-client/api";
import type { MapLayerMouseEvent, Map as MapLibre } from "maplibre-gl";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import { mayManage, useMe } from "../api/reference.ts";
import type { Target } from "../prospects/bulk-dialog.tsx";
import { type FilterState, useFilter, withFilter } from "../prospects/filter.ts";
import { FilterBar } from "../prospects/filter-bar.tsx";
import { useProspect } from "../prospects/queries.ts";
import { Button } from "../ui/button.tsx";
import { lazily, Part } from "../ui/states.tsx";
import { amount, numberText } from "../ui/text.ts";
import { Canvas } from "./canvas.tsx";
import { useProspectTiles } from "./donuts.ts";
import { area, collection, point } from "./features.ts";
import { prepareLayers, setData } from "./layers.ts";
import { Legend } from "./legend.tsx";
import style from "./page.module.css";
import { type Overview, useOverview } from "./queries.ts";
import { type ClickedTerritory, clickedTerritory, useTerritoriesOn } from "./territories.ts";
import { idOf } from "./tiles.ts";
import { useView } from "./view.ts";

// The code of these components is loaded when the user first opens them, so that it does not delay the prospects.
const MapTable = lazily(async () => (await import("./table.tsx")).MapTable);
const Lasso = lazily(async () => (await import("./select.tsx")).Lasso);
const Frame = lazily(async () => (await import("./select.tsx")).Frame);
const Drawer = lazily(async () => (await import("../prospects/drawer.tsx")).Drawer);
const BulkDialog = lazily(async () => (await import("../prospects/bulk-dialog.tsx")).BulkDialog);
const TerritoryCard = lazily(async () => (await import("./territory-card.tsx")).TerritoryCard);

export function MapPage() {
  const me = useMe().data;
  const state = useFilter();
  return me === undefined ? null : <MapOf me={me} state={state} />;
}

function MapOf({ me, state }: { me: Me; state: FilterState }) {
  const { filter, change, parameters } = state;
  const [map, setMap] = useState<MapLibre>();
  const [isDrawing, setDrawing] = useState(false);
  const selectButton = useRef<HTMLButtonElement>(null);
  // The frame that selects an area has the keyboard focus until it is removed. The focus then goes to the button that has opened the frame.
  const stopDrawing = (): void => {
    setDrawing(false);
    selectButton.current?.focus();
  };
  const [target, setTarget] = useState<Target>();
  const [selected, setSelected] = useState<readonly number[][]>();
  const endSelection = (): void => {
    setTarget(undefined);
    setSelected(undefined);
  };
  const overview = useOverview(filter);
  const box = useView(map);
  const open = Number(parameters.get("prospect") ?? Number.NaN);
  const hasTable = parameters.get("table") === "1";
  const onReady = useCallback((made: MapLibre) => {
    prepareLayers(made);
    setMap(made);
  }, []);
  const { tiles, bounds } = overview.data ?? {};
  // biome-ignore lint/correctness/useExhaustiveDependencies: the map moves to new bounds after a change of the filter, not of a prospect
  const shownFirst = useMemo(() => bounds, [tiles?.url]);
  const [territory, setTerritory] = useState<ClickedTerritory>();
  const { fault, retry, isShown } = useProspectTiles(map, tiles, (event) => {
    if (isDrawing) return;
    const id = idOf(event);
    if (id === undefined) event.target.easeTo({ center: event.lngLat, zoom: event.target.getZoom() + 2 });
    else change({ prospect: String(id) });
  });

  return (
    <div className={style.page}>
      <div className={style.main}>
        <header className={`${style.head} row between`}>
          <div className={style.title}>
            <h1>Map</h1>
            <p>
              <span aria-live="polite" data-count={overview.data?.mapped}>
                {overview.error === null ? textOf(overview.data) : overview.error.message}
              </span>{" "}
              <Link href={withFilter("/prospects", filter)}>Show as a list</Link>
            </p>
            {fault !== undefined && (
              <p role="alert">
                Parts of the map could not be loaded. <Button onClick={retry}>Load them again</Button>
              </p>
            )}
          </div>
          <FilterBar me={me} state={state}>
            <Button aria-pressed={hasTable} onClick={() => change({ table: hasTable ? undefined : "1" })}>
              Table
            </Button>
            {map !== undefined && isShown && mayManage(me) && (
              <Part>
                <Lasso
                  map={map}
                  filter={filter}
                  isDrawing={isDrawing}
                  setDrawing={setDrawing}
                  button={selectButton}
                  onArea={setSelected}
                  onSelect={(ids) => setTarget({ ids })}
                />
              </Part>
            )}
          </FilterBar>
        </header>
        <div className={style.split}>
          <div className={style.map}>
            <Canvas
              label="Map of prospects"
              bounds={shownFirst}
              isWaiting={!isShown && fault === undefined}
              onReady={onReady}
            />
            <Legend />
            <Part>
              {territory !== undefined && !isDrawing && (
                <TerritoryCard
                  territory={territory}
                  onFilter={
                    filter.territoryId === String(territory.id)
                      ? undefined
                      : () => change({ territoryId: String(territory.id) })
                  }
                  onClose={() => setTerritory(undefined)}
                />
              )}
              {map !== undefined && isDrawing && (
                <Frame
                  map={map}
                  filter={filter}
                  onCancel={stopDrawing}
                  onSelect={(inside) => {
                    stopDrawing();
                    setSelected(ringOf(inside.bbox));
                    setTarget({ filter: inside });
                  }}
                />
              )}
            </Part>
          </div>
          {hasTable && (
            <section className={`${style.table} stack tight`} aria-label="Prospects of the map">
              <Part what="the table">{box !== undefined && <MapTable filter={filter} box={box} />}</Part>
            </section>
          )}
        </div>
      </div>
      <Part>
        {Number.isInteger(open) && <Drawer id={open} onClose={() => change({ prospect: undefined })} />}
        {target !== undefined && <BulkDialog target={target} onClose={endSelection} onStarted={endSelection} />}
      </Part>
      {map !== undefined && isShown && (
        <TerritoriesOn
          map={map}
          onClick={(event) => {
            if (!isDrawing) setTerritory(clickedTerritory(event));
          }}
        />
      )}
      {map !== undefined && Number.isInteger(open) && <OpenMark map={map} id={open} />}
      {map !== undefined && selected !== undefined && <SelectedArea map={map} ring={selected} />}
    </div>
  );
}

/** A component without content. The page adds it when the prospects are shown, so that the territories are loaded after them. */
function TerritoriesOn({ map, onClick }: { map: MapLibre; onClick: (event: MapLayerMouseEvent) => void }) {
  useTerritoriesOn(map, onClick);
  return null;
}

function textOf(overview: Overview | undefined): string {
  if (overview === undefined) return "Loading the prospects …";
  const { mapped, unmapped } = overview;
  return `${amount(mapped, "prospect")} on the map${unmapped > 0 ? `, ${numberText(unmapped)} without a place` : ""}.`;
}

/** Shows the selected area until the dialog about its prospects closes. */
function SelectedArea({ map, ring }: { map: MapLibre; ring: readonly number[][] }) {
  useEffect(() => {
    setData(map, "selected-area", collection([area(ring)]));
    return () => setData(map, "selected-area", collection([]));
  }, [map, ring]);
  return null;
}

/** Returns the corners of a box `west,south,east,north`. */
function ringOf(box = ""): number[][] {
  const [west = 0, south = 0, east = 0, north = 0] = box.split(",").map(Number);
  // The box crosses the 180th meridian if west is greater than east. Its right edge is then drawn beyond 180 degrees.
  const right = west > east ? east + 360 : east;
  return [
    [west, south],
    [right, south],
    [right, north],
    [west, north],
  ];
}

/** Draws a mark around the prospect that is open beside the map, even if the prospect itself is hidden in a cluster. */
function OpenMark({ map, id }: { map: MapLibre; id: number }) {
  const { lat, lng } = useProspect(id).data ?? {};
  useEffect(() => {
    const isPlaced = typeof lat === "number" && typeof lng === "number";
    setData(map, "open-prospect", collection(isPlaced ? [point(lng, lat)] : []));
    return () => setData(map, "open-prospect", collection([]));
  }, [map, lat, lng]);
  return null;
}
