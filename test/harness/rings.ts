/** Makes rings for tests of territories. A ring is a list of points, and a point is a pair of longitude and latitude. */

type Ring = [lng: number, lat: number][];

/** Reads the points of a text such as "0 0, 4 0, 4 4". */
export const ringOf = (text: string): Ring =>
  text.split(", ").map((point) => {
    const [lng = Number.NaN, lat = Number.NaN] = point.split(" ").map(Number);
    return [lng, lat];
  });

/** Returns the corners of a rectangle, counter-clockwise from the south-western one. */
export const rectangle = (west: number, south: number, east: number, north: number): Ring => [
  [west, south],
  [east, south],
  [east, north],
  [west, north],
];
