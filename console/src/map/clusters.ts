/** Joins prospects to clusters that do not overlap on the screen, so that each number can be read. */

/** Prospects at one place of the map. The position is in the plane of the map: 0 to 1 from west to east, and from north to south. */
export interface Cluster {
  readonly x: number;
  readonly y: number;
  readonly count: number;
  /** The number of prospects with each status. The keys are names from the map tile, such as `status_7`, or colours of statuses. */
  readonly byStatus: Readonly<Record<string, number>>;
}

/** The width in pixels of the whole map at zoom 0. */
const WORLD_PX = 512;
const GAP_PX = 2;
/** The cell in column x and row y has the number x * ROW + y. ROW is larger than the number of rows, so that all cells differ. */
const ROW = 2 ** 25;
const NEIGHBOURS = [-ROW, 0, ROW].flatMap((right) => [right - 1, right, right + 1]);

/** The radius of a donut in pixels. It grows with the logarithm of the count, so that a large cluster does not cover its neighbours. */
export const radiusOf = (count: number): number => 13 + 2.5 * Math.log10(count);

/**
 * Joins clusters that would overlap at this zoom, until none overlap. The returned clusters have the same number of prospects together. A
 * cluster that is far enough from all others is returned unchanged.
 */
export function withoutOverlaps(clusters: readonly Cluster[], zoom: number): Cluster[] {
  const scale = WORLD_PX * 2 ** zoom;
  const total = clusters.reduce((sum, { count }) => sum + count, 0);
  // A cell is as wide as the largest possible donut. Clusters that overlap are therefore in the same cell or in neighbouring cells.
  const cells = scale / (2 * radiusOf(total) + GAP_PX);
  const shown = new Map<number, Set<Cluster>>();
  const cellOf = ({ x, y }: Cluster): number => Math.floor(x * cells) * ROW + Math.floor(y * cells);
  const overlapping = (cluster: Cluster): Cluster | undefined => {
    const cell = cellOf(cluster);
    for (const step of NEIGHBOURS) {
      for (const other of shown.get(cell + step) ?? []) {
        const pixels = Math.hypot(other.x - cluster.x, other.y - cluster.y) * scale;
        if (pixels < radiusOf(other.count) + radiusOf(cluster.count) + GAP_PX) return other;
      }
    }
    return undefined;
  };
  for (const cluster of clusters.toSorted((a, b) => b.count - a.count)) {
    let next = cluster;
    // A joined cluster is larger and at another place, so it may overlap a cluster that was far enough away before.
    for (let other = overlapping(next); other !== undefined; other = overlapping(next)) {
      shown.get(cellOf(other))?.delete(other);
      next = joined(other, next);
    }
    const cell = shown.get(cellOf(next)) ?? new Set();
    shown.set(cellOf(next), cell.add(next));
  }
  return [...shown.values()].flatMap((cell) => [...cell]);
}

/** Returns one cluster with the prospects of both, at the centre of these prospects. */
function joined(a: Cluster, b: Cluster): Cluster {
  const count = a.count + b.count;
  const byStatus = { ...a.byStatus };
  for (const [name, number] of Object.entries(b.byStatus)) byStatus[name] = (byStatus[name] ?? 0) + number;
  return { x: (a.x * a.count + b.x * b.count) / count, y: (a.y * a.count + b.y * b.count) / count, count, byStatus };
}
