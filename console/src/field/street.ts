/** Finds the next door of a walk: along one side of a street, back along the other side, and then the nearest other door. */
import { metresBetween, type Position } from "./distance.ts";

/** A street of a city, and the place of a door in it. */
export interface Place {
  /** The same text for all doors of the street. */
  readonly street: string;
  readonly number: number;
  /** The letter of the house number and the unit, for example `b apt 3`. Empty if there is none. */
  readonly unit: string;
}

export interface Stop {
  readonly key: string;
  readonly place: Place | undefined;
  readonly position: Position | undefined;
}

/** 1 if the rep walks towards larger house numbers, -1 if towards smaller ones. */
export type Direction = 1 | -1;

export interface Step<S extends Stop> {
  readonly stop: S;
  readonly direction: Direction;
}

interface Address {
  readonly address1: string;
  readonly address2: string | null;
  readonly city: string;
  readonly zip: string;
}

const UNIT = /[\s,]+(?:(?:apt|apartment|unit|suite|ste|flat|floor|lot)\b\.?|#).*$/i;
/**
 * The house number is before the name of the street, as in `12b Elm St`, or after it, as in `Hauptstr. 12b`. In `12 S Elm St`, the letter
 * is a direction and belongs to the name of the street.
 */
const BEFORE = /^(\d{1,9})([a-z]|\s[a-df-mo-rt-vx-z])?[\s,]+(\S.*)$/i;
const AFTER = /^(\S.*?)[\s,]+(\d{1,9})\s?([a-z]?)$/i;

/** Returns undefined if the first line of the address has no house number. */
export function placeOf({ address1, address2, city, zip }: Address): Place | undefined {
  const line = address1.trim();
  const house = line.replace(UNIT, "");
  const before = BEFORE.exec(house);
  const [, first = "", second = "", third = ""] = before ?? AFTER.exec(house) ?? [];
  const [number, letter, street] = before === null ? [second, third, first] : [first, second, third];
  if (street === "") return undefined;
  const unit = [letter, line.slice(house.length), address2 ?? ""].map(plain).filter((part) => part !== "");
  return { street: [street, city, zip].map(plain).join("|"), number: Number(number), unit: unit.join(" ") };
}

const plain = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[\s,.#]+/g, " ")
    .trim();

/**
 * Returns the next door after `from` for which `isOpen` is true. On the same side of the street, this is the door with the next house
 * number in the direction of the walk. After the last one, it is the door at the nearer end of the other side. If no door in the street is
 * open, it is the nearest open door elsewhere. Returns undefined if no door is open.
 */
export function nextStop<S extends Stop>(
  stops: readonly S[],
  from: S,
  direction: Direction,
  isOpen: (stop: S) => boolean,
): Step<S> | undefined {
  const open = stops.filter((stop) => stop.key !== from.key && isOpen(stop));
  return alongStreet(open, from, direction) ?? nearest(open, from.position);
}

function alongStreet<S extends Stop>(open: readonly S[], from: S, direction: Direction): Step<S> | undefined {
  const { place: here } = from;
  if (here === undefined) return undefined;
  const isSameSide = (place: Place): boolean => (place.number - here.number) % 2 === 0;
  const street = open
    .flatMap((stop) => (stop.place?.street === here.street ? [{ stop, place: stop.place }] : []))
    .sort((a, b) => direction * byNumber(a.place, b.place));
  const side = street.filter(({ place }) => isSameSide(place));
  const ahead = side.find(({ place }) => direction * byNumber(place, here) > 0);
  if (ahead !== undefined) return { stop: ahead.stop, direction };
  // Doors on this side that the walk has passed without a visit come after the doors on the other side.
  const opposite = street.filter(({ place }) => !isSameSide(place));
  const [first, last] = opposite.length > 0 ? [opposite[0], opposite.at(-1)] : [undefined, side.at(-1)];
  if (last === undefined) return undefined;
  const far = ({ place }: typeof last): number => Math.abs(place.number - here.number);
  if (first !== undefined && far(first) < far(last)) return { stop: first.stop, direction };
  return { stop: last.stop, direction: direction === 1 ? -1 : 1 };
}

const units = new Intl.Collator("en", { numeric: true });
export const byNumber = (a: Place, b: Place): number => a.number - b.number || units.compare(a.unit, b.unit);

/** Returns the nearest of the doors that have a position. Without a position to start from, returns the first door. */
export function nearest<S extends Stop>(open: readonly S[], from: Position | undefined): Step<S> | undefined {
  let [found, least] = [open[0], Number.POSITIVE_INFINITY];
  for (const stop of open) {
    if (from === undefined || stop.position === undefined) continue;
    const metres = metresBetween(from, stop.position);
    if (metres < least) [found, least] = [stop, metres];
  }
  return found === undefined ? undefined : { stop: found, direction: 1 };
}

/** Returns the direction of a rep who has walked from `from` to `to`. `before` is the direction of the walk until then. */
export function directionOf(from: Place | undefined, to: Place | undefined, before: Direction): Direction {
  if (from === undefined || to === undefined || from.street !== to.street) return 1;
  // A rep who has crossed the street, from an odd to an even number or back, keeps the direction.
  if ((from.number - to.number) % 2 !== 0) return before;
  return byNumber(from, to) <= 0 ? 1 : -1;
}
