/** Joins clusters that would overlap on the screen, so that each number can be read. */

/** Prospects at one place of the map. The position is in the plane of the map: 0 to 1 from west to east, and from north to south. */
export interface Cluster {
  readonly x: number;
  readonly y: number;
  readonly count: number;
  /** The number of prospects by the name of their status in the tile, such as `status_7`. */
  readonly byStatus: Readonly<Record<string, number>>;
}

/** The width in pixels of the whole map at zoom 0. */
const WORLD_PX = 512;
const GAP_PX = 2;

/** The radius of a donut in pixels. It grows with the logarithm of the count, so that thousands do not cover their neighbours. */
export const radiusOf = (count: number): number => 13 + 2.5 * Math.log10(count);

/** Returns clusters that do not overlap at this zoom. Their counts add up to those of the given ones. */
export function withoutOverlaps(clusters: readonly Cluster[], zoom: number): Cluster[] {
  const scale = WORLD_PX * 2 ** zoom;
  const shown: Cluster[] = [];
  for (const cluster of clusters.toSorted((a, b) => b.count - a.count)) {
    let next = cluster;
    const isNear = (other: Cluster): boolean =>
      Math.hypot(other.x - next.x, other.y - next.y) * scale < radiusOf(other.count) + radiusOf(next.count) + GAP_PX;
    // A joined cluster is larger and at another place, so it may overlap a cluster that was far enough away before.
    for (let at = shown.findIndex(isNear); at !== -1; at = shown.findIndex(isNear)) {
      for (const other of shown.splice(at, 1)) next = joined(other, next);
    }
    shown.push(next);
  }
  return shown;
}

/** The joined cluster is at the centre of the prospects of both. */
function joined(a: Cluster, b: Cluster): Cluster {
  const count = a.count + b.count;
  const names = new Set([...Object.keys(a.byStatus), ...Object.keys(b.byStatus)]);
  return {
    x: (a.x * a.count + b.x * b.count) / count,
    y: (a.y * a.count + b.y * b.count) / count,
    count,
    byStatus: Object.fromEntries([...names].map((name) => [name, (a.byStatus[name] ?? 0) + (b.byStatus[name] ?? 0)])),
  };
}
