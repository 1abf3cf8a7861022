/** The page with territories on a map and in a table. Users draw and change territories, and assign the prospects inside them. */
import type { Territory } from "canvassing-client/api";
import type { Map as MapLibre } from "maplibre-gl";
import { useCallback, useEffect, useEffectEvent, useMemo, useState } from "react";
import { useSearchParams } from "wouter";
import { Download } from "../api/download.tsx";
import { nameOf, useTerritories, useUsers } from "../api/reference.ts";
import { Canvas } from "../map/canvas.tsx";
import { useProspectTiles } from "../map/donuts.ts";
import { drawPolygon } from "../map/draw.ts";
import { boundsOf } from "../map/features.ts";
import { prepareLayers } from "../map/layers.ts";
import { useOverview } from "../map/queries.ts";
import { useTerritoriesOn } from "../map/territories.ts";
import { idOf } from "../map/tiles.ts";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Page } from "../ui/page.tsx";
import { Answer, Empty } from "../ui/states.tsx";
import { Time } from "../ui/time.tsx";
import { cornersIn, POLYGON, textOf } from "./corners.ts";
import { useTerritoryDraft } from "./edits.ts";
import { ImportButton } from "./import.tsx";
import style from "./page.module.css";
import { TerritoryForm, TerritoryPanel } from "./panel.tsx";

const everything = {};
const ignore = (): void => undefined;

export function TerritoriesPage() {
  const query = useTerritories();
  const [isDrawing, setDrawing] = useState(false);
  const [form, setForm] = useState<"typed" | "drawn">();
  const drawn = useTerritoryDraft("drawn");
  // Ends the drawing. If corners were drawn, opens the form with these corners, so that the user can finish the polygon there.
  const stop = (): void => {
    setDrawing(false);
    if (drawn.drafts.length > 0) setForm("drawn");
  };
  const pressed = useEffectEvent((event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    // Without this call, the same press of Escape would close the form that `stop` opens.
    event.preventDefault();
    stop();
  });
  useEffect(() => {
    if (!isDrawing) return;
    const listen = (event: KeyboardEvent): void => pressed(event);
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, [isDrawing]);
  return (
    <Page
      title="Territories"
      lead="Areas of the map that you assign to reps."
      actions={
        <>
          <ImportButton />
          <Download path="/api/territories.geojson" name="territories.geojson">
            Download GeoJSON
          </Download>
          <Button kind="quiet" onClick={() => setForm("typed")}>
            Type the corners
          </Button>
          <Button
            kind="main"
            aria-pressed={isDrawing}
            onClick={() => (isDrawing || drawn.drafts.length > 0 ? stop() : setDrawing(true))}
          >
            {isDrawing ? "Stop drawing" : "Draw a territory"}
          </Button>
        </>
      }
    >
      <Answer query={query} what="the territories">
        {(territories) => (
          <Territories
            territories={territories}
            isDrawing={isDrawing}
            onCorner={(corners) => drawn.change(POLYGON, textOf(corners))}
            onDone={(ring) => {
              drawn.change(POLYGON, textOf(ring));
              setDrawing(false);
              setForm("drawn");
            }}
          />
        )}
      </Answer>
      {form !== undefined && <TerritoryForm edited={form} onClose={() => setForm(undefined)} />}
    </Page>
  );
}

interface TerritoriesProps {
  readonly territories: readonly Territory[];
  readonly isDrawing: boolean;
  readonly onCorner: (corners: readonly number[][]) => void;
  readonly onDone: (ring: number[][]) => void;
}

function Territories({ territories, isDrawing, onCorner, onDone }: TerritoriesProps) {
  const [parameters, setParameters] = useSearchParams();
  const open = territories.find(({ id }) => String(id) === parameters.get("territory"));
  const select = useCallback(
    (id: number | undefined) => setParameters(id === undefined ? {} : { territory: String(id) }),
    [setParameters],
  );
  const [map, setMap] = useState<MapLibre>();
  const onReady = useCallback((made: MapLibre) => {
    prepareLayers(made);
    setMap(made);
  }, []);
  const { fault, retry } = useTerritoriesOn(map, (event) => {
    if (!isDrawing) select(idOf(event));
  });
  // The page also shows the prospects, so that a user sees which ones a new territory would contain. A click on a prospect does not open
  // it. It selects the territory at that place, because the click handler of the territories gets the click too.
  useProspectTiles(map, useOverview(everything).data?.tiles, ignore);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new functions must not restart the drawing
  useEffect(() => {
    if (map === undefined || !isDrawing) return;
    return drawPolygon(map, { onCorner, onDone });
  }, [map, isDrawing]);
  const bounds = useMemo(() => {
    const shown = open === undefined ? territories : [open];
    return boundsOf(shown.flatMap(({ polygon }) => polygon.map(([lng = 0, lat = 0]) => [lng, lat] as const)));
  }, [territories, open]);
  return (
    <div className={style.split}>
      <div className="stack">
        {isDrawing && <p role="status">Click each corner on the map, and the first corner again to finish.</p>}
        {fault !== undefined && (
          <p role="alert">
            Parts of the map could not be loaded. <Button onClick={retry}>Load them again</Button>
          </p>
        )}
        <div className={`${style.map} card`}>
          <Canvas label="Map of territories" bounds={bounds} onReady={onReady} />
        </div>
      </div>
      {open !== undefined && (
        <TerritoryPanel key={open.id} territory={open} map={map} onClose={() => select(undefined)} />
      )}
      <TerritoryTable territories={territories} open={open} onOpen={select} />
    </div>
  );
}

interface TableProps {
  readonly territories: readonly Territory[];
  readonly open: Territory | undefined;
  readonly onOpen: (id: number) => void;
}

function TerritoryTable({ territories, open, onOpen }: TableProps) {
  const users = useUsers().data;
  const columns = useMemo(
    (): readonly Column<Territory>[] => [
      {
        id: "name",
        header: "Name",
        cell: ({ id, name }) => (
          <button type="button" className="open" onClick={() => onOpen(id)}>
            {name}
          </button>
        ),
      },
      {
        id: "assignedTo",
        header: "Assigned to",
        cell: ({ assignedToUserId }) => {
          const user = users?.find(({ id }) => id === assignedToUserId);
          if (user !== undefined) return nameOf(user);
          return users === undefined ? "" : "Nobody";
        },
      },
      { id: "corners", header: "Corners", align: "right", cell: ({ polygon }) => cornersIn(polygon) },
      { id: "created", header: "Created", minor: true, cell: ({ createdAt }) => <Time iso={createdAt} /> },
    ],
    [users, onOpen],
  );
  return (
    <DataTable
      label="Territories"
      columns={columns}
      rows={territories}
      isCurrent={({ id }) => id === open?.id}
      empty={<Empty title="There are no territories yet">Draw one on the map, or import GeoJSON.</Empty>}
    />
  );
}
