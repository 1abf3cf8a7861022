/** Orders doors for a walk: street by street, up the side with odd house numbers, and then back down the other side. */
import { byNumber, type Place, placeOf } from "../field/street.ts";

interface Addressed {
  readonly address: Parameters<typeof placeOf>[0] | null;
}

export interface Street<D> {
  /** For example `n pearl st, denver, 80203`. Undefined for the doors whose address has no house number. */
  readonly name: string | undefined;
  readonly doors: readonly D[];
}

export function streetsOf<D extends Addressed>(doors: readonly D[]): readonly Street<D>[] {
  const streets = new Map<string, { door: D; place: Place }[]>();
  const others: D[] = [];
  for (const door of doors) {
    const place = door.address === null ? undefined : placeOf(door.address);
    if (place === undefined) others.push(door);
    else streets.set(place.street, [...(streets.get(place.street) ?? []), { door, place }]);
  }
  const walks = [...streets]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([street, stops]) => ({
      name: street.replaceAll("|", ", "),
      doors: stops.sort((a, b) => inWalk(a.place, b.place)).map(({ door }) => door),
    }));
  return others.length === 0 ? walks : [...walks, { name: undefined, doors: others }];
}

/** Returns the house number with its letter and its unit, for example `12b apt 3`. Undefined without a house number. */
export function houseOf(address: Parameters<typeof placeOf>[0]): string | undefined {
  const place = placeOf(address);
  return place && `${place.number}${/^[a-z]\b/.test(place.unit) ? "" : " "}${place.unit}`.trim();
}

function inWalk(a: Place, b: Place): number {
  const [isOdd, isOtherOdd] = [a.number % 2 === 1, b.number % 2 === 1];
  if (isOdd !== isOtherOdd) return isOdd ? -1 : 1;
  return isOdd ? byNumber(a, b) : byNumber(b, a);
}
