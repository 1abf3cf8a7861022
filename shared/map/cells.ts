/** Groups the matches of a search by the cells of a fixed grid on the map. */
import { at, doubleAt, uint16At, uint32At } from "#shared/at.ts";
import type { Box } from "#shared/company-index/criteria.ts";
import type { Matches } from "#shared/company-index/search/match.ts";
import { cellAt, latAt, lngAt, mercatorX, mercatorY } from "#shared/geometry/mercator.ts";

/** Maximum number of cells that the requested box may touch. If it touches more, the cells are made larger. */
export const CELLS_MAX = 2_000;
/** The power of 2 of the cells in each direction of a tile of 256 pixels. */
const CELL_ZOOM = 3;
/**
 * Half a pixel, in cells. The degrees of a map window are rounded. With this margin, the rounding never changes the size of the cells while
 * a user moves the map.
 */
const MARGIN = 1 / 64;

/** A part of a grid of cells. Their size depends only on the zoom and on the size of the box, so they stay when a user moves the map. */
export class View {
  /** Number of cells of the world in each direction. */
  readonly cells: number;
  readonly columns: number;
  readonly rows: number;
  readonly #west: number;
  readonly #north: number;

  private constructor(cells: number, west: number, north: number, columns: number, rows: number) {
    this.cells = cells;
    this.#west = west;
    this.#north = north;
    this.columns = columns;
    this.rows = rows;
  }

  static ofBox([minLng, minLat, maxLng, maxLat]: Box, zoom: number): View {
    const [left, right] = [mercatorX(minLng), mercatorX(maxLng)];
    const width = minLng <= maxLng ? right - left : right - left + 1;
    const [top, bottom] = [withinMap(mercatorY(maxLat)), withinMap(mercatorY(minLat))];
    let cells = 2 ** (zoom + CELL_ZOOM);
    const touched = (size: number): number => Math.ceil(size * cells + MARGIN) + 1;
    while (touched(width) * touched(bottom - top) > CELLS_MAX) cells /= 2;
    const [west, north] = [cellAt(left, cells), cellAt(top, cells)];
    const columns = ((cellAt(right, cells) - west + cells) % cells) + 1;
    // A box around nearly the whole earth may begin and end in the same column, although it touches all.
    return new View(cells, west, north, width * cells > columns ? cells : columns, cellAt(bottom, cells) - north + 1);
  }

  /** `side` is the number of cells in each direction, a power of 2. */
  static ofTile({ z, x, y }: { readonly z: number; readonly x: number; readonly y: number }, side: number): View {
    return new View(2 ** z * side, x * side, y * side, side, side);
  }

  /** -1 if the point is outside the view. */
  cellOf(lat: number, lng: number): number {
    const column = (cellAt(mercatorX(lng), this.cells) - this.#west + this.cells) % this.cells;
    if (column >= this.columns) return -1;
    const row = cellAt(mercatorY(lat), this.cells) - this.#north;
    return row < 0 || row >= this.rows ? -1 : row * this.columns + column;
  }

  keyOf(cell: number): string {
    const { column, row } = this.#gridOf(cell);
    return `${Math.log2(this.cells)}/${column}/${row}`;
  }

  /** Completely inside the cell, even if its edges are rounded: minLng, minLat, maxLng, maxLat. */
  insideOf(cell: number): Box {
    const { column, row } = this.#gridOf(cell);
    const { cells } = this;
    return [
      lngAt(column / cells) + ROUNDING,
      latAt((row + 1) / cells) + ROUNDING,
      lngAt((column + 1) / cells) - ROUNDING,
      latAt(row / cells) - ROUNDING,
    ];
  }

  #gridOf(cell: number): { column: number; row: number } {
    const column = (this.#west + (cell % this.columns)) % this.cells;
    return { column, row: this.#north + Math.floor(cell / this.columns) };
  }
}

const withinMap = (position: number): number => Math.max(0, Math.min(1, position));

/** Maximum rounding error of an edge of a cell, in degrees. */
const ROUNDING = 1e-9;

export interface Cell {
  readonly count: number;
  /** minLng, minLat, maxLng, maxLat of the points. */
  readonly box: [number, number, number, number];
  readonly center: { readonly lat: number; readonly lng: number };
  /** The number of points for each status, in the order of `FilledCells.statusIds`. */
  readonly byStatus: readonly number[];
  readonly lastId: number;
}

/** The cells that contain points, in the order of their numbers in the view. */
export interface FilledCells {
  readonly cells: readonly (readonly [at: number, cell: Cell])[];
  /** Null means no status. */
  readonly statusIds: readonly (number | null)[];
  readonly total: number;
  /** Matches without coordinates. */
  readonly unmapped: number;
}

/** A position in `FilledCells.statusIds`. */
export const onlyStatusOf = ({ byStatus }: Cell): number => byStatus.indexOf(1);

/** The points of one segment, or of all unflushed matches. A point without coordinates has NaN. */
interface Points {
  readonly rows: Iterable<number>;
  readonly lats: Float64Array;
  readonly lngs: Float64Array;
  readonly ids: Float64Array;
  /** Indexes into `statuses`, whose values are indexes into `FilledCells.statusIds`. */
  readonly codes: Uint16Array;
  readonly statuses: readonly number[];
}

export function cellsOf({ segments, unflushed }: Pick<Matches, "segments" | "unflushed">, view: View): FilledCells {
  const statusIds = [
    ...new Set([
      ...segments.flatMap(({ inView }) => inView.segment.main.statusId.values),
      ...unflushed.map(({ statusId }) => statusId),
    ]),
  ];
  const sums = new Sums(view, statusIds.length);
  for (const { inView, rows } of segments) {
    const { main, places } = inView.segment;
    const { values, codes } = main.statusId;
    const statuses = values.map((id) => statusIds.indexOf(id));
    sums.add({ rows, lats: places.lat, lngs: places.lng, ids: main.ids, codes, statuses });
  }
  sums.add({
    rows: unflushed.keys(),
    lats: Float64Array.from(unflushed, ({ lat }) => lat ?? Number.NaN),
    lngs: Float64Array.from(unflushed, ({ lng }) => lng ?? Number.NaN),
    ids: Float64Array.from(unflushed, ({ id }) => id),
    codes: Uint16Array.from(unflushed, ({ statusId }) => statusIds.indexOf(statusId)),
    statuses: [...statusIds.keys()],
  });
  return { cells: sums.filled(), statusIds, total: sums.total, unmapped: sums.unmapped };
}

/** The sums are in typed arrays, because a request adds up to a million points. */
class Sums {
  total = 0;
  unmapped = 0;
  readonly #view: View;
  readonly #statuses: number;
  readonly #counts: Uint32Array;
  readonly #byStatus: Uint32Array;
  readonly #lats: Float64Array;
  readonly #lngs: Float64Array;
  readonly #lastIds: Float64Array;
  /** Four numbers for each cell: the lowest longitude and latitude of the points in this cell, and then the highest ones. */
  readonly #boxes: Float64Array;
  /** A box completely inside each cell in which `add` has found a point. */
  readonly #insides: Box[] = [];

  constructor(view: View, statuses: number) {
    const size = view.columns * view.rows;
    this.#view = view;
    this.#statuses = statuses;
    this.#counts = new Uint32Array(size);
    this.#byStatus = new Uint32Array(size * statuses);
    this.#lats = new Float64Array(size);
    this.#lngs = new Float64Array(size);
    this.#lastIds = new Float64Array(size);
    this.#boxes = new Float64Array(size * 4);
  }

  /** Adds the points that are in the view. One loop with local variables needs half the time of a call for each point. */
  add({ rows, lats, lngs, ids, codes, statuses }: Points): void {
    const [counts, byStatus, latSums, lngSums] = [this.#counts, this.#byStatus, this.#lats, this.#lngs];
    const [lastIds, boxes, width] = [this.#lastIds, this.#boxes, this.#statuses];
    let [total, unmapped, cell] = [0, 0, -1];
    let [west, south, east, north] = [1, 1, -1, -1];
    for (const row of rows) {
      const lat = doubleAt(lats, row);
      const lng = doubleAt(lngs, row);
      if (Number.isNaN(lat) || Number.isNaN(lng)) {
        unmapped++;
        continue;
      }
      // Consecutive rows of a segment are mostly in the same cell, and this check is faster than `cellOf`.
      if (!(lng > west && lng < east && lat > south && lat < north)) {
        const next = this.#view.cellOf(lat, lng);
        if (next < 0) continue;
        cell = next;
        [west, south, east, north] = this.#insides[cell] ??= this.#view.insideOf(cell);
      }
      const count = uint32At(counts, cell);
      const box = cell * 4;
      if (count === 0 || lng < doubleAt(boxes, box)) boxes[box] = lng;
      if (count === 0 || lat < doubleAt(boxes, box + 1)) boxes[box + 1] = lat;
      if (count === 0 || lng > doubleAt(boxes, box + 2)) boxes[box + 2] = lng;
      if (count === 0 || lat > doubleAt(boxes, box + 3)) boxes[box + 3] = lat;
      const ofStatus = cell * width + at(statuses, uint16At(codes, row));
      byStatus[ofStatus] = uint32At(byStatus, ofStatus) + 1;
      counts[cell] = count + 1;
      latSums[cell] = doubleAt(latSums, cell) + lat;
      lngSums[cell] = doubleAt(lngSums, cell) + lng;
      lastIds[cell] = doubleAt(ids, row);
      total++;
    }
    this.total += total;
    this.unmapped += unmapped;
  }

  filled(): FilledCells["cells"] {
    return [...this.#counts].flatMap((count, at) => (count === 0 ? [] : [[at, this.#cellAt(at, count)] as const]));
  }

  #cellAt(at: number, count: number): Cell {
    const edge = (side: number): number => doubleAt(this.#boxes, at * 4 + side);
    return {
      count,
      box: [edge(0), edge(1), edge(2), edge(3)],
      center: { lat: doubleAt(this.#lats, at) / count, lng: doubleAt(this.#lngs, at) / count },
      byStatus: [...this.#byStatus.subarray(at * this.#statuses, (at + 1) * this.#statuses)],
      lastId: doubleAt(this.#lastIds, at),
    };
  }
}
