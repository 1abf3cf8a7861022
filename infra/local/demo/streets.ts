/** The streets of the demo companies' cities as lines for the map, so that the demo has streets without internet. */
import { allOf, alongStreet, type City, denver, phoenix, type Street } from "./cities.ts";

export function demoStreets(): object {
  const features = [denver, phoenix].flatMap(({ grid, streets, suburbs }) =>
    [streets, ...suburbs.map((suburb) => suburb.streets)].flatMap(allOf).map((street) => lineOf(grid, street)),
  );
  return { type: "FeatureCollection", features };
}

function lineOf(grid: City["grid"], { name, runs, at, from, to }: Street): object {
  const coordinates = [from, to].map((number) => {
    const along = alongStreet(grid, runs, number);
    return runs === "northSouth" ? [at, along] : [along, at];
  });
  return { type: "Feature", properties: { name }, geometry: { type: "LineString", coordinates } };
}
