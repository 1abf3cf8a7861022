/** Clusters of prospects on the map: the cells of a fixed grid, so that moving the map changes none of them. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import type { Matches } from "#shared/company-index/search/match.ts";
import type { ReadContext } from "#shared/context.ts";
import { explain } from "#shared/documentation.ts";
import { MAX_ZOOM } from "#shared/geometry/mercator.ts";
import { CELLS_MAX, type Cell, cellsOf, onlyStatusOf, View } from "#shared/map/cells.ts";
import { Zoom } from "#shared/map/tile.ts";
import { filterParameters, filterTexts, withNear } from "#shared/prospects/filter.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { DEFAULT_COLOR } from "#shared/reference/schema.ts";
import { HexColor, Id, LAT_TEXT, LNG_TEXT, named } from "#shared/schema.ts";

export const ClusterQuery = z
  .object({ ...filterParameters, bbox: filterParameters.bbox.def.innerType, zoom: Zoom })
  .check(withNear());
export type ClusterQuery = z.output<typeof ClusterQuery>;

const Count = z.int().check(z.minimum(0));

const StatusCount = named(
  "ClusterStatusCount",
  z.object({ statusId: z.nullable(Id), count: Count }),
  "The number of prospects with a status.",
);

const Cluster = named(
  "Cluster",
  z.object({
    type: z.enum(["cluster", "pin"]),
    key: z.optional(z.string()),
    id: z.optional(Id),
    lat: z.number(),
    lng: z.number(),
    count: Count,
    byStatus: z.optional(z.array(StatusCount)),
    bbox: z.optional(z.array(z.number()).check(z.minLength(4), z.maxLength(4))),
    statusColor: z.optional(HexColor),
  }),
  "Several prospects in one cell of the grid, or the pin of a prospect that is alone in its cell.",
);
type Cluster = z.infer<typeof Cluster>;

export const Clusters = named(
  "Clusters",
  z.object({ items: z.array(Cluster), total: Count, unmapped: Count }),
  "The prospects in a part of the map, as clusters and pins.",
);
export type Clusters = z.infer<typeof Clusters>;

/* @__PURE__ */ explain([ClusterQuery], () => ({
  fields: {
    ...filterTexts(),
    bbox: {
      ...filterTexts().bbox,
      description:
        "The visible part of the map: `minLng,minLat,maxLng,maxLat` in degrees. Cells at its edge are counted completely. A minLng above the maxLng crosses the antimeridian.",
    },
    zoom: {
      description: `The zoom of the map, from 0 to ${MAX_ZOOM}, for tiles of 256 pixels. A cell has 32 pixels. It is larger if the box would have more than ${CELLS_MAX} cells.`,
      example: 10,
      schema: { type: "integer", minimum: 0, maximum: MAX_ZOOM },
    },
  },
}));
/* @__PURE__ */ explain([Cluster], () => ({
  fields: {
    type: "`pin` if the prospect is alone in its cell.",
    key: "The cell of a cluster. A client can recognise the cluster by it after the map has moved.",
    id: "The id of a pin's prospect.",
    lat: LAT_TEXT,
    lng: LNG_TEXT,
    count: "The number of prospects; 1 for a pin.",
    byStatus: "The numbers of prospects of a cluster by status.",
    bbox: "The smallest box that contains the prospects of a cluster: minLng, minLat, maxLng, maxLat.",
    statusColor: "Colour of the current status of a pin.",
  },
}));
/* @__PURE__ */ explain([Clusters], () => ({
  fields: {
    total: "The number of prospects in all items.",
    unmapped: "The number of prospects that match the other filters and lack coordinates.",
  },
}));

export async function prospectClusters(
  context: ReadContext,
  caller: Caller,
  { bbox, zoom, ...filter }: ClusterQuery,
): Promise<Clusters> {
  const { names, matches } = await findFiltered(context, caller, filter, { located: true });
  return clustersOf(matches, View.ofBox(bbox, zoom), names);
}

export function clustersOf(
  matches: Pick<Matches, "segments" | "unflushed">,
  view: View,
  names: Pick<Dictionary, "statuses">,
): Clusters {
  const { cells, statusIds, total, unmapped } = cellsOf(matches, view);
  const items = cells.map(([at, cell]) =>
    cell.count === 1 ? pinOf(cell, statusIds, names) : clusterOf(cell, statusIds, view.keyOf(at)),
  );
  return { items, total, unmapped };
}

type StatusIds = readonly (number | null)[];

function pinOf(cell: Cell, ids: StatusIds, { statuses }: Pick<Dictionary, "statuses">): Cluster {
  const statusId = ids[onlyStatusOf(cell)] ?? null;
  const status = statusId === null ? undefined : statuses.get(statusId);
  return { type: "pin", id: cell.lastId, ...cell.center, count: 1, statusColor: status?.color ?? DEFAULT_COLOR };
}

function clusterOf({ count, byStatus, box, center }: Cell, ids: StatusIds, key: string): Cluster {
  const counts = byStatus.flatMap((number, status) =>
    number === 0 ? [] : [{ statusId: ids[status] ?? null, count: number }],
  );
  return { type: "cluster", key, ...center, count, byStatus: counts.sort((a, b) => b.count - a.count), bbox: box };
}
