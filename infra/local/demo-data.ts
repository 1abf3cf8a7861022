/** Lists names, streets and cities for the demo companies, and makes random sequences that are equal for equal seeds. */

export interface City {
  readonly name: string;
  readonly state: string;
  readonly zips: readonly string[];
  readonly lat: number;
  readonly lng: number;
  readonly streets: readonly string[];
}

export const denver: City = {
  name: "Denver",
  state: "CO",
  zips: ["80202", "80203", "80204", "80205", "80206", "80209", "80210", "80218"],
  lat: 39.7392,
  lng: -104.9903,
  streets: ["Colfax Ave", "Speer Blvd", "Pearl St", "Race St", "Downing St", "Larimer St", "Alameda Ave", "Evans Ave"],
};

export const phoenix: City = {
  name: "Phoenix",
  state: "AZ",
  zips: ["85003", "85004", "85006", "85008", "85012", "85014", "85016", "85018"],
  lat: 33.4484,
  lng: -112.074,
  streets: [
    "Camelback Rd",
    "Roosevelt St",
    "Thomas Rd",
    "Indian School Rd",
    "McDowell Rd",
    "Osborn Rd",
    "Encanto Blvd",
  ],
};

/** The suburbs of each city. A third of its addresses are in a suburb. */
export const suburbs: Readonly<Record<string, readonly string[]>> = {
  Denver: ["Aurora", "Lakewood", "Englewood"],
  Phoenix: ["Tempe", "Scottsdale", "Glendale"],
};

export const firstNames: readonly string[] = [
  ..."Alice Ben Carla Derek Elena Frank Grace Hector Irene James Karen Luis Maria".split(" "),
  ..."Nora Oscar Paula Quinn Rosa Samuel Tara Uma Victor Wendy Xavier Yolanda Zoe".split(" "),
];

export const lastNames: readonly string[] = [
  ..."Anderson Brown Chavez Diaz Evans Foster Garcia Hughes Ivanov Johnson Kim Lopez".split(" "),
  ..."Miller Nguyen O'Brien Patel Quintero Reed Smith Turner Underwood Vargas Walker Young".split(" "),
];

export const noteTexts = [
  "Roof is about 15 years old, interested in an inspection.",
  "Dog in the yard, ring the side door.",
  "Asked to come back after 6 pm.",
  "Neighbour had hail damage repaired last year.",
  "Owner is travelling until the end of the month.",
  "Wants a written quote before the next visit.",
] as const;

/**
 * Returns a pseudo-random generator (Mulberry32) of numbers from 0 (included) to 1 (excluded). Equal seeds give equal sequences, so that
 * the demo data is always the same.
 */
export function randomSequence(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
