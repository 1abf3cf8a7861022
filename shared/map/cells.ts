/** Groups the matches of a search by the cells of a fixed grid on the map. */
import { at, doubleAt, uint16At } from "#shared/at.ts";
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

/** The sums of a cell. */
class Sum {
  /** A box completely inside the cell. */
  readonly inside: Box;
  readonly #byStatus: number[];
  #count = 0;
  #lats = 0;
  #lngs = 0;
  #west = Number.POSITIVE_INFINITY;
  #south = Number.POSITIVE_INFINITY;
  #east = Number.NEGATIVE_INFINITY;
  #north = Number.NEGATIVE_INFINITY;
  #lastId = 0;

  constructor(inside: Box, statuses: number) {
    this.inside = inside;
    this.#byStatus = Array<number>(statuses).fill(0);
  }

  /** `status` is a position in `FilledCells.statusIds`. */
  add(lat: number, lng: number, id: number, status: number): void {
    this.#count++;
    this.#lats += lat;
    this.#lngs += lng;
    if (lng < this.#west) this.#west = lng;
    if (lat < this.#south) this.#south = lat;
    if (lng > this.#east) this.#east = lng;
    if (lat > this.#north) this.#north = lat;
    this.#byStatus[status] = at(this.#byStatus, status) + 1;
    this.#lastId = id;
  }

  get cell(): Cell {
    return {
      count: this.#count,
      box: [this.#west, this.#south, this.#east, this.#north],
      center: { lat: this.#lats / this.#count, lng: this.#lngs / this.#count },
      byStatus: this.#byStatus,
      lastId: this.#lastId,
    };
  }
}

export function cellsOf({ segments, unflushed }: Pick<Matches, "segments" | "unflushed">, view: View): FilledCells {
  const statusIds = [
    ...new Set([
      ...segments.flatMap(({ inView }) => inView.segment.main.statusId.values),
      ...unflushed.map(({ statusId }) => statusId),
    ]),
  ];
  const sums = new Map<number, Sum>();
  let [total, unmapped] = [0, 0];
  let last: Sum | undefined;
  /** Returns the sums of a point's cell. Undefined if the point has no coordinates or is outside the view. */
  const sumAt = (lat: number, lng: number): Sum | undefined => {
    // Consecutive rows of a segment are mostly in the same cell, and this check is faster than `cellOf`.
    if (last !== undefined) {
      const [west, south, east, north] = last.inside;
      if (lng > west && lng < east && lat > south && lat < north) return last;
    }
    if (Number.isNaN(lat) || Number.isNaN(lng)) {
      unmapped++;
      return undefined;
    }
    const cell = view.cellOf(lat, lng);
    if (cell < 0) return undefined;
    last = sums.get(cell) ?? new Sum(view.insideOf(cell), statusIds.length);
    sums.set(cell, last);
    return last;
  };
  const add = (lat: number, lng: number, id: number, status: number): void => {
    const sum = sumAt(lat, lng);
    if (sum === undefined) return;
    sum.add(lat, lng, id, status);
    total++;
  };
  for (const { inView, rows } of segments) {
    const { main, places } = inView.segment;
    const { values, codes } = main.statusId;
    const statuses = values.map((id) => statusIds.indexOf(id));
    for (const row of rows) {
      const status = at(statuses, uint16At(codes, row));
      add(doubleAt(places.lat, row), doubleAt(places.lng, row), doubleAt(main.ids, row), status);
    }
  }
  for (const { lat, lng, id, statusId } of unflushed)
    add(lat ?? Number.NaN, lng ?? Number.NaN, id, statusIds.indexOf(statusId));
  const cells = [...sums].sort(([a], [b]) => a - b).map(([number, sum]) => [number, sum.cell] as const);
  return { cells, statusIds, total, unmapped };
}
