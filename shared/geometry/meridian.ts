/** Cuts rings at the 180th meridian, as GeoJSON requires (RFC 7946, section 3.1.9), and joins the parts again. */
import { at } from "#shared/at.ts";
import { following, type Ring, unwrapped } from "#shared/geometry/ring.ts";

type Point = [lng: number, lat: number];

/** A point of an `unwrapped` ring. */
interface Corner {
  readonly x: number;
  readonly lat: number;
  /** The longitude in the original ring. A point that a cut adds has none. */
  readonly lng?: number;
}

/** Returns open rings that do not cross the meridian and cover the same area by the even-odd rule. */
export function cutAtMeridian(ring: Ring): Point[][] {
  const whole = unwrapped(ring);
  if (whole === undefined) return [ring.map(([lng, lat]): Point => [lng, lat])];
  const parts: Point[][] = [];
  let rest: Corner[][] = [whole.map(([x, lat], i): Corner => ({ x, lat, lng: at(ring, i)[0] }))];
  for (let turns = 0; rest.length > 0; turns++) {
    const edge = 180 + 360 * turns;
    const halves = rest.map((part) => halvesOf(part, edge));
    for (const part of halves.flatMap(({ west }) => west)) parts.push(part.map((corner) => pointOf(corner, turns)));
    rest = halves.flatMap(({ east }) => east);
  }
  return parts;
}

/** Gives a corner on the meridian the longitude 180 or -180, by the side of its part. Other corners keep their longitude exactly. */
function pointOf({ x, lat, lng }: Corner, turns: number): Point {
  const moved = x - 360 * turns;
  return [Math.abs(moved) === 180 ? moved : (lng ?? moved), lat];
}

/** A line along the ring on one side of the meridian. Its ends are on the meridian. */
type Chain = readonly Corner[];

function halvesOf(ring: readonly Corner[], edge: number): { west: Corner[][]; east: Corner[][] } {
  if (ring.every(({ x }) => x <= edge)) return { west: [[...ring]], east: [] };
  const west: Chain[] = [];
  const east: Chain[] = [];
  // The list of corners is rotated, so that its first corner is not west of the meridian and its last corner is.
  const start = ring.findIndex(({ x }, at) => x >= edge && (ring.at(at - 1)?.x ?? edge) < edge);
  if (start < 0) return { west: [], east: [[...ring]] };
  const turned = [...ring.slice(start), ...ring.slice(0, start)];
  let chain: Corner[] = [];
  let before = at(turned, turned.length - 1);
  const chains: { readonly isEast: boolean; readonly corners: Corner[] }[] = [];
  for (const corner of turned) {
    const isEast = corner.x >= edge;
    if (isEast !== before.x >= edge) {
      const share = (edge - before.x) / (corner.x - before.x);
      // A corner on the meridian keeps its latitude exactly, which the formula could round.
      const lat = corner.x === edge ? corner.lat : before.lat + share * (corner.lat - before.lat);
      const crossing = { x: edge, lat };
      chain.push(crossing);
      chain = [crossing];
      chains.push({ isEast, corners: chain });
    }
    chain.push(corner);
    before = corner;
  }
  const [first] = chains[0]?.corners ?? [];
  if (first !== undefined) chain.push(first);
  for (const { isEast, corners } of chains) (isEast ? east : west).push(corners);
  return { west: closed(west), east: closed(east) };
}

/** Connects the ends of chains in pairs from south to north. By the even-odd rule, the meridian between the ends of a pair is inside. */
function closed(chains: readonly Chain[]): Corner[][] {
  const ends = chains
    .flatMap((chain, number) => [
      { number, isLast: false, lat: at(chain, 0).lat },
      { number, isLast: true, lat: at(chain, chain.length - 1).lat },
    ])
    .sort((a, b) => a.lat - b.lat);
  const places: number[] = [];
  for (const [place, { number, isLast }] of ends.entries()) places[2 * number + (isLast ? 1 : 0)] = place;
  const passed = new Set<number>();
  const rings: Corner[][] = [];
  for (const start of chains.keys()) {
    const ring: Corner[] = [];
    let [number, isForward] = [start, true];
    while (!passed.has(number)) {
      passed.add(number);
      const chain = at(chains, number);
      ring.push(...(isForward ? chain : chain.toReversed()));
      const next = at(ends, at(places, 2 * number + (isForward ? 1 : 0)) ^ 1);
      [number, isForward] = [next.number, !next.isLast];
    }
    const open = ring.filter(({ x, lat }, i) => x !== ring.at(i - 1)?.x || lat !== ring.at(i - 1)?.lat);
    if (open.length > 2 && open.some(({ x }) => x !== open[0]?.x)) rings.push(open);
  }
  return rings;
}

/** Joins open, counter-clockwise rings at equal edges on both sides of the meridian. Undefined if the result is not one ring across it. */
export function joinedAtMeridian(rings: readonly Ring[]): Point[] | undefined {
  const corners = rings.flatMap((ring) => ring.map(([lng, lat]): Point => [lng, lat]));
  let end = 0;
  const after = rings.flatMap((ring) => {
    const first = end;
    end += ring.length;
    return ring.map((_, i) => first + ((i + 1) % ring.length));
  });
  const edgesAt = (side: 180 | -180): Map<string, number> =>
    new Map(
      corners.flatMap(([lng, lat], i) => {
        const [toLng, toLat] = at(corners, at(after, i));
        if (lng !== side || toLng !== side) return [];
        return [[side === 180 ? `${lat},${toLat}` : `${toLat},${lat}`, i] as const];
      }),
    );
  const [west, east] = [edgesAt(180), edgesAt(-180)];
  const next = [...after];
  const left = new Set(corners.keys());
  for (const [place, up] of west) {
    const down = east.get(place);
    if (down === undefined) continue;
    const [upEnd, downEnd] = [at(after, up), at(after, down)];
    next[up] = at(after, downEnd);
    next[down] = at(after, upEnd);
    left.delete(upEnd);
    left.delete(downEnd);
  }
  const ring: Point[] = [];
  const [start] = left;
  if (start === undefined) return undefined;
  for (let i = start; left.delete(i); i = at(next, i)) ring.push(at(corners, i));
  return left.size === 0 && unwrapped(ring) !== undefined ? withoutCuts(ring) : undefined;
}

/** Maximum distance in degrees between a point that a cut added and the straight line between its two neighbours. */
const CUT = 1e-9;

/** Leaves out the points that a cut has added on the meridian. All other points on the meridian get the longitude 180. */
export function withoutCuts(ring: Ring): Point[] {
  const whole = unwrapped(ring);
  if (whole === undefined) return ring.map(([lng, lat]): Point => [lng, lat]);
  return ring.flatMap(([lng, lat], i): Point[] => {
    if (Math.abs(lng) !== 180) return [[lng, lat]];
    const [x1, y1] = at(whole, (i + whole.length - 1) % whole.length);
    const [[x], [x2, y2]] = [at(whole, i), following(whole, i)];
    const isBetween = (x1 - x) * (x2 - x) < 0 && Math.abs(y1 + ((x - x1) / (x2 - x1)) * (y2 - y1) - lat) < CUT;
    return isBetween ? [] : [[180, lat]];
  });
}
