/** Groups the matches of a search by the cells of a fixed grid on the map. */
import type { Box } from "#shared/company-index/criteria.ts";
import type { Matches } from "#shared/company-index/search/match.ts";
import { cellAt, latAt, lngAt, mercatorX, mercatorY } from "#shared/geometry/mercator.ts";

/** Maximum number of cells that a box may touch. */
export const CELLS_MAX = 2_000;
/** A tile of 256 pixels has 2 to the power of this number of cells in each direction, so a cell has 32 pixels. */
const CELL_ZOOM = 3;

/**
 * A part of a grid of cells on the map. The size of the cells depends only on the zoom and on the size of the box, so the cells stay the
 * same when a user moves the map.
 */
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

  /** Returns the cells that touch a box. */
  static ofBox([minLng, minLat, maxLng, maxLat]: Box, zoom: number): View {
    const [left, right] = [mercatorX(minLng), mercatorX(maxLng)];
    const width = minLng <= maxLng ? right - left : right - left + 1;
    const [top, bottom] = [withinMap(mercatorY(maxLat)), withinMap(mercatorY(minLat))];
    let cells = 2 ** (zoom + CELL_ZOOM);
    while ((Math.ceil(width * cells) + 1) * (Math.ceil((bottom - top) * cells) + 1) > CELLS_MAX) cells /= 2;
    const [west, north] = [cellAt(left, cells), cellAt(top, cells)];
    const columns = ((cellAt(right, cells) - west + cells) % cells) + 1;
    // A box around nearly the whole earth may begin and end in the same column. `columns` is then 1, although the box touches all columns.
    return new View(cells, west, north, width * cells > columns ? cells : columns, cellAt(bottom, cells) - north + 1);
  }

  /** Returns the cells of a tile, which is divided into `side` cells in each direction. `side` must be a power of 2. */
  static ofTile({ z, x, y }: { readonly z: number; readonly x: number; readonly y: number }, side: number): View {
    return new View(2 ** z * side, x * side, y * side, side, side);
  }

  /** Returns the number of the cell in the view. Returns -1 for a point outside. */
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

  /** Returns a box that lies completely inside the cell, even if the edges of the cell are rounded: minLng, minLat, maxLng, maxLat. */
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

/** The number of points in one cell, with their mean position, their bounding box, and their number for each status. */
export class Cell {
  readonly inside: Box;
  count = 0;
  lastId = 0;
  readonly box: [number, number, number, number] = [180, 90, -180, -90];
  /** Numbers of points. The position in this list is the position of the status in `FilledCells.statusIds`. */
  readonly byStatus: number[] = [];
  #lat = 0;
  #lng = 0;

  constructor(inside: Box) {
    this.inside = inside;
  }

  contains(lat: number, lng: number): boolean {
    const [west, south, east, north] = this.inside;
    return lng > west && lng < east && lat > south && lat < north;
  }

  add(lat: number, lng: number, id: number, status: number): void {
    this.count++;
    this.lastId = id;
    this.#lat += lat;
    this.#lng += lng;
    const { box, byStatus } = this;
    if (lng < box[0]) box[0] = lng;
    if (lat < box[1]) box[1] = lat;
    if (lng > box[2]) box[2] = lng;
    if (lat > box[3]) box[3] = lat;
    while (byStatus.length <= status) byStatus.push(0);
    byStatus[status] = (byStatus[status] ?? 0) + 1;
  }

  /** The status of a cell with one point, as a position in `FilledCells.statusIds`. */
  get onlyStatus(): number {
    return this.byStatus.indexOf(1);
  }

  get center(): { lat: number; lng: number } {
    return { lat: this.#lat / this.count, lng: this.#lng / this.count };
  }
}

/** The cells that contain points, in the order of their numbers in the view. */
export interface FilledCells {
  readonly cells: readonly (readonly [at: number, cell: Cell])[];
  /** The id of each status. Cells count the points of a status by the position of its id in this list. */
  readonly statusIds: readonly (number | null)[];
  readonly total: number;
  /** The number of matches without coordinates. */
  readonly unmapped: number;
}

export function cellsOf({ segments, unflushed }: Pick<Matches, "segments" | "unflushed">, view: View): FilledCells {
  const cells = new Map<number, Cell>();
  const statusIds: (number | null)[] = [];
  const statusOf = (id: number | null): number => {
    const known = statusIds.indexOf(id);
    return known >= 0 ? known : statusIds.push(id) - 1;
  };
  let [total, unmapped] = [0, 0];
  let last: Cell | undefined;
  const add = (lat: number, lng: number, id: number, status: number): void => {
    // Consecutive rows of a segment are close to each other on the map. Most of them are in the same cell as the row before, and this check
    // is faster than `cellOf`.
    if (last?.contains(lat, lng) !== true) {
      const at = view.cellOf(lat, lng);
      if (at < 0) return;
      last = cells.get(at) ?? new Cell(view.insideOf(at));
      cells.set(at, last);
    }
    last.add(lat, lng, id, status);
    total++;
  };
  for (const { inView, rows } of segments) {
    const { main, geo } = inView.segment;
    if (geo === undefined) throw new Error("the coordinates of a segment were not loaded");
    const { ids, statusId } = main;
    const statuses = statusId.values.map(statusOf);
    for (const row of rows) {
      const [lat = Number.NaN, lng = Number.NaN] = [geo.lat[row], geo.lng[row]];
      if (Number.isNaN(lat) || Number.isNaN(lng)) unmapped++;
      else add(lat, lng, ids[row] ?? 0, statuses[statusId.codes[row] ?? 0] ?? 0);
    }
  }
  for (const { id, lat, lng, statusId } of unflushed) {
    if (lat === null || lng === null) unmapped++;
    else add(lat, lng, id, statusOf(statusId));
  }
  return { cells: [...cells].sort(([a], [b]) => a - b), statusIds, total, unmapped };
}
