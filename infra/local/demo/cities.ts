/**
 * Reads the streets and neighbourhoods of the demo companies' cities. The streets exist. The house numbers are invented. The coordinates of
 * a house follow the city's grid of house numbers, so the house is on its street or near it.
 */
import * as z from "zod/mini";
import denverData from "./denver.json" with { type: "json" };
import phoenixData from "./phoenix.json" with { type: "json" };
import { pick, rounded } from "./synthetic-prospect.ts";

const Street = z.object({
  name: z.string(),
  /** The longitude of a street that runs north and south, or the latitude of a street that runs east and west. */
  at: z.number(),
  /** The range of house numbers. House numbers west or south of the axis (the line from which a city counts them) are negative. */
  from: z.number(),
  to: z.number(),
  zip: z.string(),
});
export type Street = z.infer<typeof Street>;

const Streets = z.object({ northSouth: z.array(Street), eastWest: z.array(Street) });
type Streets = z.infer<typeof Streets>;

const City = z.object({
  name: z.string(),
  state: z.string(),
  /** The house numbers of a street begin at one of two axes. One block has a hundred house numbers. */
  grid: z.object({
    /** The coordinates at which the two axes cross. */
    lat: z.number(),
    lng: z.number(),
    /** Length of one block in degrees, for each direction from the axes. */
    block: z.object({ north: z.number(), south: z.number(), east: z.number(), west: z.number() }),
  }),
  streets: Streets,
  /** A third of the prospects are in a suburb. */
  suburbs: z.array(z.object({ name: z.string(), streets: Streets })),
  neighbourhoods: z.array(
    z.object({
      name: z.string(),
      /** The corners as longitude and latitude. The first corner is not repeated at the end. */
      corners: z.array(z.tuple([z.number(), z.number()])),
    }),
  ),
});
export type City = z.infer<typeof City>;

export const denver = z.parse(City, denverData);
export const phoenix = z.parse(City, phoenixData);

/** Distance between the middle of a street and its houses, in degrees. */
const TO_HOUSES = 0.00015;

export interface House {
  readonly address1: string;
  readonly city: string;
  readonly zip: string;
  readonly lat: number;
  readonly lng: number;
}

export type Direction = keyof Streets;

const allOf = ({ northSouth, eastWest }: Streets): (Street & { readonly runs: Direction })[] => [
  ...northSouth.map((street) => ({ ...street, runs: "northSouth" as const })),
  ...eastWest.map((street) => ({ ...street, runs: "eastWest" as const })),
];

/** Returns the latitude or longitude of a house number, whichever changes along the street. */
export function alongStreet({ lat, lng, block }: City["grid"], runs: Direction, number: number): number {
  const blocks = number / 100;
  return runs === "northSouth"
    ? lat + blocks * (number < 0 ? block.south : block.north)
    : lng + blocks * (number < 0 ? block.west : block.east);
}

/** Returns a random address on a street of the city or of a suburb, with an invented house number and its coordinates. */
export function houseIn(city: City, random: () => number): House {
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
