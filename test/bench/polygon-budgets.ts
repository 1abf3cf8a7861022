/** Measures the processor time of a warm function for the worst polygons of 5 000 points (budget 17 of docs/benchmarks.md). */
import { RingArea } from "#shared/geometry/ring.ts";
import { shapeOf, tileOfShapes } from "#shared/map/territory-tile.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import { packPolygon } from "#shared/reference/polygon.ts";
import { byTerritory } from "#shared/reports/territories.ts";
import { createTerritory } from "../harness/verbs.ts";
import { type Budget, budgetsOf, sizeOf } from "./budget.ts";
import { medianOf } from "./clock.ts";
import { largestCityTile } from "./map-budgets.ts";
import { cities } from "./places.ts";
import type { Stage } from "./stage.ts";

const POINTS = 5_000;
const RUNS = 3;
/** Number of measured territories. As many territories of 5 000 points fit into eight imported GeoJSON files of 1 MB. */
const TERRITORIES = 89;

const [{ lng, lat } = { lng: 0, lat: 0 }] = cities;
const ringBy = (pointAt: (share: number, isEven: boolean) => [number, number]): [number, number][] =>
  Array.from({ length: POINTS }, (_, i) => pointAt(i / POINTS, i % 2 === 0));

const zigzag = ringBy((share, isEven) => [lng - 0.3 + 0.6 * share, lat + (isEven ? -0.3 : 0.3)]);
const curls = ringBy((share) => {
  const angle = 2 * Math.PI * 60 * share;
  return [lng - 0.6 + 1.2 * share + 0.014 * Math.sin(angle), lat + 0.02 * Math.cos(angle) + 0.03 * share];
});
const rings = {
  "a zigzag over a city": zigzag,
  "a zigzag over the world": ringBy((share, isEven) => [-180 + 360 * share, isEven ? -90 : 90]),
  "corners that alternate over the world": ringBy((share, isEven) =>
    isEven ? [-180 + 90 * share, -90 + 180 * share] : [90 * share, 90 - 180 * share],
  ),
  "edges that all cross in a city": ringBy((share, isEven) => {
    const [x, y] = [80 * Math.cos(Math.PI * share), 45 * Math.sin(Math.PI * share)];
    return isEven ? [lng + x, lat + y] : [lng - x, lat - y];
  }),
};

/**
 * Maximum mean number of edges that a search in a polygon compares with a prospect. Without `RingArea`, it would compare all 5 000 edges.
 */
const MOST_COMPARISONS = 500;

export async function polygonBudgets(stage: Stage): Promise<Budget[]> {
  const { context, caller, company } = stage;
  const line = budgetsOf(sizeOf(company.count));
  const budgets: Budget[] = [];
  const { matches } = await findFiltered(context, caller, {}, { onMap: true });
  for (const [name, polygon] of Object.entries(rings)) {
    const area = new RingArea(polygon);
    for (const { inView } of matches.segments) {
      const { lng: lngs = new Float64Array(), lat: lats = new Float64Array() } = inView.segment.geo ?? {};
      area.pointsInside(lngs, lats);
    }
    const compared = area.compared / matches.total;
    budgets.push(line(17, `${name}, comparisons of an edge for each prospect`, MOST_COMPARISONS, compared));
    const { cpuMs } = await medianOf(RUNS, () => findFiltered(context, caller, { polygon }));
    budgets.push(line(17, `search in ${name}, processor time, ms (aim 1000)`, null, cpuMs));
  }
  const polygons = Array.from({ length: TERRITORIES }, (_, i) =>
    zigzag.map(([x, y]): [number, number] => [x + i / 1e5, y]),
  );
  for (const [i, polygon] of polygons.entries()) {
    const input = { name: `Zigzag ${i}`, polygon, totalProperties: 0, assignedToUserId: null };
    await createTerritory(context, caller, input);
  }
  const active = new Map(Array.from({ length: company.count }, (_, i) => [company.firstId + i, [1, 0, 0, 0]]));
  const report = await medianOf(RUNS, () => byTerritory(context, caller, active));
  const text = `report of activity by ${TERRITORIES} zigzags, processor time, ms (aim 1000)`;
  budgets.push(line(17, text, null, report.cpuMs));
  for (const [name, ring, zoom] of [
    ["zigzags", zigzag, 10],
    ["rings with many loops", curls, 8],
  ] as const) {
    const polygon = packPolygon(ring);
    const shapes = polygons.map((_, id) => shapeOf({ id, version: 1, name, assignedToUserId: null, polygon }));
    const tile = await medianOf(RUNS, () => tileOfShapes(shapes, largestCityTile(zoom)));
    budgets.push(line(17, `tile of ${TERRITORIES} ${name}, processor time, ms (aim 1000)`, null, tile.cpuMs));
  }
  return budgets;
}
