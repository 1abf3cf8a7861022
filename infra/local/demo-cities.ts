/**
 * Lists streets and neighbourhoods of the demo companies' cities. The streets exist. The house numbers are invented. The coordinates of a
 * house follow the city's grid of house numbers, so the house is on its street or near it.
 */
import { pick, rounded } from "./synthetic-prospect.ts";

/** The grid of house numbers of a city. The house numbers of a street begin at one of two axes. One block has a hundred house numbers. */
interface Grid {
  /** The coordinates at which the two axes cross. */
  readonly lat: number;
  readonly lng: number;
  /** Length of one block in degrees, for each direction from the axes. */
  readonly block: { readonly north: number; readonly south: number; readonly east: number; readonly west: number };
}

export interface Street {
  readonly name: string;
  readonly runs: "north-south" | "east-west";
  /** The longitude of a street that runs north and south, or the latitude of a street that runs east and west. */
  readonly at: number;
  /** The range of house numbers. House numbers west or south of the axis (the line from which a city counts them) are negative. */
  readonly from: number;
  readonly to: number;
  readonly zip: string;
}

interface Neighbourhood {
  readonly name: string;
  /** The corners as longitude and latitude. The first corner is not repeated at the end. */
  readonly corners: readonly (readonly [lng: number, lat: number])[];
}

export interface City {
  readonly name: string;
  readonly state: string;
  readonly grid: Grid;
  readonly streets: readonly Street[];
  /** The streets of each suburb. A third of the prospects are in a suburb. */
  readonly suburbs: Readonly<Record<string, readonly Street[]>>;
  readonly neighbourhoods: readonly Neighbourhood[];
}

type Row = readonly [name: string, at: number, from: number, to: number, zip: string];

const streetsOf =
  (runs: Street["runs"]) =>
  (...rows: readonly Row[]): Street[] =>
    rows.map(([name, at, from, to, zip]) => ({ name, runs, at, from, to, zip }));

const northSouth = streetsOf("north-south");
const eastWest = streetsOf("east-west");

export const denver: City = {
  name: "Denver",
  state: "CO",
  grid: { lat: 39.7169, lng: -104.9874, block: { north: 0.0015, south: 0.00182, east: 0.00117, west: 0.00126 } },
  streets: [
    ...northSouth(
      ["N Pearl St", -104.9804, 400, 1_900, "80203"],
      ["N Downing St", -104.9733, 800, 1_900, "80218"],
      ["N Race St", -104.9638, 1_000, 2_600, "80206"],
      ["N Josephine St", -104.9583, 700, 2_600, "80206"],
      ["N Clayton St", -104.954, 3_000, 3_900, "80205"],
      ["S Logan St", -104.9823, -1_900, -300, "80209"],
      ["S Pearl St", -104.9804, -2_500, -500, "80210"],
      ["S Gaylord St", -104.9613, -1_800, -500, "80209"],
      ["S Clayton St", -104.954, -2_600, -1_200, "80210"],
      ["N Dahlia St", -104.9316, 1_900, 3_400, "80207"],
      ["N Hudson St", -104.9268, 1_900, 3_400, "80207"],
      ["N Krameria St", -104.9186, 1_500, 2_900, "80220"],
      ["N Zuni St", -105.0153, 2_900, 4_400, "80211"],
      ["N Lowell Blvd", -105.0345, 2_600, 4_400, "80211"],
      ["N Tennyson St", -105.0437, 3_200, 4_600, "80212"],
    ),
    ...eastWest(
      ["E 12th Ave", 39.7353, 200, 2_800, "80218"],
      ["E 23rd Ave", 39.7512, 4_000, 6_400, "80207"],
      ["E Montview Blvd", 39.7475, 4_000, 6_500, "80207"],
      ["W 32nd Ave", 39.7622, -4_800, -2_600, "80211"],
    ),
  ],
  suburbs: {
    Aurora: northSouth(
      ["Dayton St", -104.8769, 900, 2_400, "80010"],
      ["Galena St", -104.8698, 900, 2_400, "80010"],
      ["Lansing St", -104.8626, 1_000, 2_400, "80010"],
    ),
    Lakewood: northSouth(
      ["Harlan St", -105.0617, 300, 1_900, "80214"],
      ["Pierce St", -105.0722, 700, 2_400, "80214"],
      ["S Upham St", -105.0772, -1_400, -300, "80226"],
    ),
    Englewood: northSouth(
      ["S Clarkson St", -104.9777, -4_600, -2_900, "80113"],
      ["S Acoma St", -104.9888, -4_600, -2_900, "80110"],
    ),
  },
  neighbourhoods: [
    {
      name: "Capitol Hill",
      corners: [
        [-104.9872, 39.7222],
        [-104.9551, 39.7222],
        [-104.9551, 39.7575],
        [-104.9745, 39.7575],
        [-104.9872, 39.744],
      ],
    },
    {
      name: "Washington Park",
      corners: [
        [-104.9872, 39.667],
        [-104.9516, 39.667],
        [-104.9516, 39.7115],
        [-104.9872, 39.7115],
      ],
    },
    {
      name: "Park Hill",
      corners: [
        [-104.9415, 39.7385],
        [-104.9085, 39.7385],
        [-104.9085, 39.7695],
        [-104.9415, 39.7695],
      ],
    },
    {
      name: "The Highlands",
      corners: [
        [-105.0485, 39.7535],
        [-105.0225, 39.7535],
        [-105.0135, 39.7605],
        [-105.0135, 39.7865],
        [-105.0485, 39.7865],
      ],
    },
    {
      name: "Lakewood",
      corners: [
        [-105.083, 39.69],
        [-105.061, 39.69],
        [-105.061, 39.755],
        [-105.083, 39.755],
      ],
    },
    {
      name: "Englewood",
      corners: [
        [-104.9915, 39.6325],
        [-104.974, 39.6325],
        [-104.974, 39.665],
        [-104.9915, 39.665],
      ],
    },
  ],
};

export const phoenix: City = {
  name: "Phoenix",
  state: "AZ",
  grid: { lat: 33.4483, lng: -112.0739, block: { north: 0.00118, south: 0.00119, east: 0.00195, west: 0.00115 } },
  streets: [
    ...northSouth(
      ["N 5th Ave", -112.0801, 1_700, 2_900, "85003"],
      ["N 15th Ave", -112.0911, 1_700, 4_000, "85007"],
      ["N 7th St", -112.0651, 1_700, 5_000, "85014"],
      ["N 12th St", -112.0563, 2_000, 4_900, "85014"],
      ["N 20th St", -112.0391, 2_000, 4_900, "85016"],
      ["N 28th St", -112.0217, 2_100, 4_900, "85016"],
      ["N 40th St", -111.9957, 2_100, 4_900, "85018"],
    ),
    ...eastWest(
      ["W Encanto Blvd", 33.4731, -1_500, -100, "85003"],
      ["E Oak St", 33.4731, 700, 4_300, "85006"],
      ["E Osborn Rd", 33.4877, 700, 4_300, "85014"],
      ["E Campbell Ave", 33.5021, 700, 4_300, "85016"],
    ),
  ],
  suburbs: {
    Tempe: northSouth(
      ["S Ash Ave", -111.9427, -3_300, -2_600, "85281"],
      ["S Mill Ave", -111.94, -3_300, -2_600, "85281"],
    ),
    Scottsdale: northSouth(
      ["N Miller Rd", -111.9173, 2_800, 5_000, "85251"],
      ["N Hayden Rd", -111.9087, 2_800, 5_000, "85251"],
    ),
    Glendale: northSouth(
      ["N 57th Dr", -112.1826, 6_600, 8_000, "85301"],
      ["N 61st Ave", -112.1905, 6_600, 8_000, "85301"],
    ),
  },
  neighbourhoods: [
    {
      name: "Encanto",
      corners: [
        [-112.0925, 33.4665],
        [-112.0745, 33.4665],
        [-112.0745, 33.4955],
        [-112.0925, 33.4955],
      ],
    },
    {
      name: "Coronado",
      corners: [
        [-112.0665, 33.466],
        [-112.0395, 33.466],
        [-112.0375, 33.4835],
        [-112.0665, 33.4835],
      ],
    },
    {
      name: "Camelback East",
      corners: [
        [-112.0665, 33.484],
        [-112.019, 33.484],
        [-112.019, 33.511],
        [-112.058, 33.511],
      ],
    },
    {
      name: "Arcadia",
      corners: [
        [-112.003, 33.47],
        [-111.985, 33.47],
        [-111.985, 33.503],
        [-111.993, 33.508],
        [-112.003, 33.508],
      ],
    },
  ],
};

/** Distance between the middle of a street and its houses, in degrees. */
const TO_HOUSES = 0.00015;

export interface House {
  readonly address1: string;
  readonly city: string;
  readonly zip: string;
  readonly lat: number;
  readonly lng: number;
}

/** Returns a random address on a street of the city or of a suburb, with an invented house number and its coordinates. */
export function houseIn(city: City, random: () => number): House {
  const suburb = random() < 0.33 ? pick(Object.entries(city.suburbs), random) : undefined;
  const [town, streets] = suburb ?? [city.name, city.streets];
  const { name, runs, at, from, to, zip } = pick(streets, random);
  const number = from + Math.floor(random() * (to - from + 1));
  // Houses with odd numbers are on one side of the street, and houses with even numbers on the other side.
  const beside = number % 2 === 0 ? TO_HOUSES : -TO_HOUSES;
  const { grid } = city;
  const place =
    runs === "north-south"
      ? { lat: grid.lat + (number / 100) * (number < 0 ? grid.block.south : grid.block.north), lng: at + beside }
      : { lat: at + beside, lng: grid.lng + (number / 100) * (number < 0 ? grid.block.west : grid.block.east) };
  return {
    address1: `${Math.abs(number)} ${name}`,
    city: town,
    zip,
    lat: rounded(place.lat),
    lng: rounded(place.lng),
  };
}
