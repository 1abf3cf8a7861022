/** Groups the matches of a search by the cells of a fixed grid on the map. */
import { at, doubleAt, uint16At } from "#shared/at.ts";
import type { Box } from "#shared/company-index/criteria.ts";
import type { Matches } from "#shared/company-index/search/match.ts";
import { cellAt, latAt, lngAt, mapY, mercatorX, mercatorY } from "#shared/geometry/mercator.ts";

/** If the requested box touches more cells, the cells are made larger. */
export const CELLS_MAX = 2_000;
/** A tile of 256 pixels has 2 to the power of this number cells in each direction. */
const CELL_ZOOM = 3;
/** Half a pixel, in cells. With this margin, the rounding of degrees never changes the size of the cells while a user moves the map. */
const MARGIN = 1 / 64;

/** The cells in a box or a tile. Their size depends only on the zoom and the size of the box, so moving the map changes no cell. */
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
    const [top, bottom] = [mapY(maxLat), mapY(minLat)];
    let cells = 2 ** (zoom + CELL_ZOOM);
    const touched = (size: number): number => Math.ceil(size * cells + MARGIN) + 1;
    while (touched(width) * touched(bottom - top) > CELLS_MAX) cells /= 2;
    const [west, north] = [cellAt(left, cells), cellAt(top, cells)];
    const columns = ((cellAt(right, cells) - west + cells) % cells) + 1;
    // A box around nearly the whole earth may begin and end in the same column, although it touches all columns.
    return new View(cells, west, north, width * cells > columns ? cells : columns, cellAt(bottom, cells) - north + 1);
  }

  /** `side` is the number of cells in each direction, a power of 2. */
  static ofTile({ z, x, y }: { readonly z: number; readonly x: number; readonly y: number }, side: number): View {
    return new View(2 ** z * side, x * side, y * side, side, side);
  }

  /** Returns the number of the cell that contains the point, or -1 if the point is outside the view. */
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

  /** Returns a box that is completely inside the cell, even if its edges are rounded. */
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

/** Maximum rounding error of an edge of a cell, in degrees. */
const ROUNDING = 1e-9;

/** The cells that contain points, in the order of their numbers in the view. */
export interface FilledCells {
  readonly cells: readonly (readonly [at: number, cell: Cell])[];
  /** Null means no status. */
  readonly statusIds: readonly (number | null)[];
  readonly total: number;
  /** Matches without coordinates. */
  readonly unmapped: number;
}

/** The status of a cell with one point, as a position in `FilledCells.statusIds`. */
export const onlyStatusOf = ({ byStatus }: Cell): number => byStatus.indexOf(1);

export class Cell {
  readonly inside: Box;
  /** The number of points for each status, in the order of `FilledCells.statusIds`. */
  readonly byStatus: number[];
  count = 0;
  lastId = 0;
  #lats = 0;
  #lngs = 0;
  #west = Number.POSITIVE_INFINITY;
  #south = Number.POSITIVE_INFINITY;
  #east = Number.NEGATIVE_INFINITY;
  #north = Number.NEGATIVE_INFINITY;

  constructor(inside: Box, statuses: number) {
    this.inside = inside;
    this.byStatus = Array<number>(statuses).fill(0);
  }

  /** `status` is a position in `FilledCells.statusIds`. */
  add(lat: number, lng: number, id: number, status: number): void {
    this.count++;
    this.lastId = id;
    this.#lats += lat;
    this.#lngs += lng;
    if (lng < this.#west) this.#west = lng;
    if (lat < this.#south) this.#south = lat;
    if (lng > this.#east) this.#east = lng;
    if (lat > this.#north) this.#north = lat;
    this.byStatus[status] = at(this.byStatus, status) + 1;
  }

  /** minLng, minLat, maxLng and maxLat of the points. */
  get box(): [number, number, number, number] {
    return [this.#west, this.#south, this.#east, this.#north];
  }

  get center(): { lat: number; lng: number } {
    return { lat: this.#lats / this.count, lng: this.#lngs / this.count };
  }
}

/** The points of one segment, or of all unflushed matches. A point without coordinates has NaN. */
interface Points {
  readonly rows: Iterable<number>;
  readonly lats: Float64Array;
  readonly lngs: Float64Array;
  readonly ids: Float64Array;
  /** For each row, an index into `statuses`. The values of `statuses` are positions in `FilledCells.statusIds`. */
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

class Sums {
  total = 0;
  unmapped = 0;
  readonly #view: View;
  readonly #statuses: number;
  readonly #cells = new Map<number, Cell>();

  constructor(view: View, statuses: number) {
    this.#view = view;
    this.#statuses = statuses;
  }

  /** Adds the points that are in the view. A request adds up to a million points, so this is one loop with local variables. */
  add({ rows, lats, lngs, ids, codes, statuses }: Points): void {
    let [total, unmapped] = [0, 0];
    let cell: Cell | undefined;
    let [west, south, east, north] = [1, 1, -1, -1];
    for (const row of rows) {
      const lat = doubleAt(lats, row);
      const lng = doubleAt(lngs, row);
      if (Number.isNaN(lat) || Number.isNaN(lng)) {
        unmapped++;
        continue;
      }
      // Consecutive rows of a segment are mostly in the same cell, and this check is faster than `cellOf`.
      if (cell === undefined || !(lng > west && lng < east && lat > south && lat < north)) {
        const next = this.#view.cellOf(lat, lng);
        if (next < 0) continue;
        cell = this.#cellAt(next);
        [west, south, east, north] = cell.inside;
      }
      cell.add(lat, lng, doubleAt(ids, row), at(statuses, uint16At(codes, row)));
      total++;
    }
    this.total += total;
    this.unmapped += unmapped;
  }

  #cellAt(number: number): Cell {
    const cell = this.#cells.get(number) ?? new Cell(this.#view.insideOf(number), this.#statuses);
    this.#cells.set(number, cell);
    return cell;
  }

  filled(): FilledCells["cells"] {
    return [...this.#cells].sort(([a], [b]) => a - b);
  }
}
