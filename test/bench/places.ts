/** Generates the locations of synthetic prospects. The cities differ in size. Each has more prospects in its centre than at its edge. */
import { at } from "#shared/at.ts";
import { rounded } from "../../infra/local/demo/synthetic-prospect.ts";

export interface City {
  readonly name: string;
  readonly state: string;
  readonly zip: string;
  readonly lat: number;
  readonly lng: number;
  /** The city's share of all prospects, from 0 to 1. */
  readonly share: number;
}

export const cities: readonly City[] = [
  { name: "Denver", state: "CO", zip: "802", lat: 39.739, lng: -104.99, share: 0.17 },
  { name: "Phoenix", state: "AZ", zip: "850", lat: 33.448, lng: -112.074, share: 0.13 },
  { name: "Dallas", state: "TX", zip: "752", lat: 32.777, lng: -96.797, share: 0.1 },
  { name: "Houston", state: "TX", zip: "770", lat: 29.76, lng: -95.37, share: 0.09 },
  { name: "San Antonio", state: "TX", zip: "782", lat: 29.424, lng: -98.494, share: 0.07 },
  { name: "Austin", state: "TX", zip: "787", lat: 30.267, lng: -97.743, share: 0.06 },
  { name: "Las Vegas", state: "NV", zip: "891", lat: 36.17, lng: -115.14, share: 0.06 },
  { name: "Albuquerque", state: "NM", zip: "871", lat: 35.084, lng: -106.651, share: 0.05 },
  { name: "Tucson", state: "AZ", zip: "857", lat: 32.222, lng: -110.975, share: 0.05 },
  { name: "Oklahoma City", state: "OK", zip: "731", lat: 35.468, lng: -97.516, share: 0.04 },
  { name: "Kansas City", state: "MO", zip: "641", lat: 39.1, lng: -94.578, share: 0.04 },
  { name: "Omaha", state: "NE", zip: "681", lat: 41.257, lng: -95.934, share: 0.03 },
  { name: "Tulsa", state: "OK", zip: "741", lat: 36.154, lng: -95.993, share: 0.03 },
  { name: "Salt Lake City", state: "UT", zip: "841", lat: 40.761, lng: -111.891, share: 0.03 },
  { name: "Boise", state: "ID", zip: "837", lat: 43.615, lng: -116.202, share: 0.03 },
  { name: "Wichita", state: "KS", zip: "672", lat: 37.687, lng: -97.33, share: 0.02 },
];

/** Standard deviation of the coordinates of a city's houses, in degrees (0.11 degrees of latitude are about 12 km). */
const SPREAD = 0.11;

/** Returns a city for a random number from 0 (included) to 1 (excluded). The probability of each city is its `share`. */
export function cityAt(part: number): City {
  let rest = part;
  for (const city of cities) {
    rest -= city.share;
    if (rest < 0) return city;
  }
  return at(cities, 0);
}

/** Returns a location with six decimals (about 10 cm), like the locations that phones report. */
export function houseIn({ lat, lng }: City, random: () => number): { lat: number; lng: number } {
  // The Box-Muller transform turns two uniform random numbers into a normally distributed point around the centre.
  const radius = SPREAD * Math.sqrt(-2 * Math.log(1 - random()));
  const angle = 2 * Math.PI * random();
  return { lat: rounded(lat + radius * Math.sin(angle)), lng: rounded(lng + radius * Math.cos(angle)) };
}

export const bboxOf = ({ lat, lng }: Pick<City, "lat" | "lng">): string =>
  [lng - 0.1, lat - 0.1, lng + 0.1, lat + 0.1].map((degrees) => degrees.toFixed(3)).join();

/** Returns a box at the eastern edge of a city, which has few prospects. */
export const outskirtsOf = ({ lat, lng }: City): string => bboxOf({ lat, lng: lng + 0.25 });

export const cityBbox = "-105.09,39.639,-104.89,39.839";
