/** The Web Mercator projection, and the grids of square cells that maps use. Each point is in exactly one cell of a grid. */

export const MAX_ZOOM = 22;

/** Returns the position from west to east on the map of the world, from 0 to 1. */
export const mercatorX = (lng: number): number => (lng + 180) / 360;

/** Returns the position from north to south on the map of the world. It is below 0 or above 1 near the poles. */
export function mercatorY(lat: number): number {
  const sine = Math.sin((lat * Math.PI) / 180);
  return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
}

export const lngAt = (x: number): number => x * 360 - 180;
export const latAt = (y: number): number => (Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180) / Math.PI;

/** Returns the cell at a position if the world is divided into `cells` cells. A position outside the map counts to the outermost cell. */
export const cellAt = (position: number, cells: number): number =>
  Math.max(0, Math.min(cells - 1, Math.floor(position * cells)));
