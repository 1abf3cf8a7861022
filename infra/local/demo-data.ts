/** Lists names and note texts for the demo companies, and creates pseudo-random sequences that are equal for equal seeds. */

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
  "Insurance adjuster comes next week.",
  "Spoke with the tenant, the owner lives next door.",
  "Gate code needed, call before the visit.",
  "Skylight leaks, two layers of shingles.",
] as const;

/** The share of prospects with each status, in per cent. The remaining prospects have no status. */
export const statusShares: Readonly<Record<string, number>> = {
  New: 24,
  "Not Home": 18,
  "Go Back": 9,
  Interested: 10,
  "Appointment Set": 8,
  "Not Interested": 11,
  Sold: 9,
  "Do Not Knock": 3,
};

/**
 * Returns a pseudo-random generator (Mulberry32) of numbers from 0 (included) to 1 (excluded). Equal seeds give equal sequences, so that
 * the demo prospects have the same names and addresses each time the demo data is created.
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
