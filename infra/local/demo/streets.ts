/** The streets of the demo companies' cities as lines for the map, so that the demo has streets without internet. */
import { alongStreet, type City, type Direction, denver, phoenix, type Street } from "./cities.ts";

/** Returns the streets as GeoJSON lines with names. A street reaches from its lowest house number to its highest one. */
export function demoStreets(): object {
  const features = [denver, phoenix].flatMap(({ grid, streets, suburbs }) =>
    [streets, ...suburbs.map((suburb) => suburb.streets)].flatMap(({ northSouth, eastWest }) => [
      ...northSouth.map((street) => lineOf(grid, street, "northSouth")),
      ...eastWest.map((street) => lineOf(grid, street, "eastWest")),
    ]),
  );
  return { type: "FeatureCollection", features };
}

function lineOf(grid: City["grid"], { name, at, from, to }: Street, runs: Direction): object {
  const coordinates = [from, to].map((number) => {
    const along = alongStreet(grid, runs, number);
    return runs === "northSouth" ? [at, along] : [along, at];
  });
  return { type: "Feature", properties: { name }, geometry: { type: "LineString", coordinates } };
}
