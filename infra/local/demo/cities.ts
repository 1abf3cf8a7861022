/**
 * Reads the streets and neighbourhoods of the demo companies' cities. The streets exist, and the house numbers are invented. The
 * coordinates of a house follow the city's grid of house numbers, so the house is on its street or near it.
 */
import denver from "./denver.json" with { type: "json" };
import phoenix from "./phoenix.json" with { type: "json" };
import { pick, rounded } from "./synthetic-prospect.ts";

export { denver, phoenix };

/**
 * A city as its JSON file describes it:
 * - `grid` has the coordinates at which two axes cross. The house numbers of a street begin at one axis. A block has a hundred house
 *   numbers, and `block` is its length in degrees for each direction from the axes.
 * - `at` is the longitude of a street that runs north and south, or the latitude of a street that runs east and west. `from` and `to` are
 *   the range of its house numbers. House numbers west or south of the axis are negative.
 * - `corners` has the longitude and latitude of each corner. The first corner is not repeated at the end.
 */
export type City = typeof denver;
type Streets = City["streets"];
type Direction = keyof Streets;
type Street = Streets[Direction][number] & { readonly runs: Direction };

/** Distance between the middle of a street and its houses, in degrees. */
const TO_HOUSES = 0.00015;

const allOf = ({ northSouth, eastWest }: Streets): Street[] => [
  ...northSouth.map((street) => ({ ...street, runs: "northSouth" as const })),
  ...eastWest.map((street) => ({ ...street, runs: "eastWest" as const })),
];

/** Returns the latitude or longitude of a house number, whichever changes along the street. */
function alongStreet({ lat, lng, block }: City["grid"], runs: Direction, number: number): number {
  const blocks = number / 100;
  return runs === "northSouth"
    ? lat + blocks * (number < 0 ? block.south : block.north)
    : lng + blocks * (number < 0 ? block.west : block.east);
}

export function houseIn(city: City, random: () => number) {
  const town = random() < 0.33 ? pick(city.suburbs, random) : city;
  const { name, runs, at, from, to, zip } = pick(allOf(town.streets), random);
  const number = from + Math.floor(random() * (to - from + 1));
  // Houses with odd numbers are on one side of the street, and houses with even numbers on the other side.
  const beside = number % 2 === 0 ? TO_HOUSES : -TO_HOUSES;
  const along = alongStreet(city.grid, runs, number);
  const place = runs === "northSouth" ? { lat: along, lng: at + beside } : { lat: at + beside, lng: along };
  return {
    address1: `${Math.abs(number)} ${name}`,
    city: town.name,
    zip,
    lat: rounded(place.lat),
    lng: rounded(place.lng),
  };
}

/** Returns the streets as lines for the map, so that the demo has streets without internet. */
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
