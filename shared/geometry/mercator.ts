/** The Web Mercator projection, and the grids of square cells that maps use. */

export const MAX_ZOOM = 22;

/** 0 at the western edge of the map of the world, 1 at the eastern edge. */
export const mercatorX = (lng: number): number => (lng + 180) / 360;

/** 0 at the northern edge of the map of the world, 1 at the southern edge. Points near the poles are outside. */
export function mercatorY(lat: number): number {
  const sine = Math.sin((lat * Math.PI) / 180);
  return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
}

/** Like `mercatorY`, but a point near a pole is on the edge of the map. */
export const mapY = (lat: number): number => Math.max(0, Math.min(1, mercatorY(lat)));

export const lngAt = (x: number): number => x * 360 - 180;
export const latAt = (y: number): number => (Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180) / Math.PI;

/** Returns the number of the cell at a position on one axis, which has `cells` cells. A position outside the map is in the nearest cell. */
export const cellAt = (position: number, cells: number): number =>
  Math.max(0, Math.min(cells - 1, Math.floor(position * cells)));
