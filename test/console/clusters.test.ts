/** Tests that the clusters of the map do not overlap, and that joined clusters keep all prospects. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Cluster, radiusOf, withoutOverlaps } from "../../console/src/map/clusters.ts";

const cluster = fc
  .record({
    // fast-check spreads random integers evenly, but not random doubles. The coordinates are therefore computed from integers.
    x: fc.nat(10_000).map((step) => 0.2 + step / 50_000_000),
    y: fc.nat(10_000).map((step) => 0.3 + step / 50_000_000),
    sold: fc.nat(4_000),
    none: fc.integer({ min: 1, max: 4_000 }),
  })
  .map(
    ({ x, y, sold, none }): Cluster => ({ x, y, count: sold + none, byStatus: { status_1: sold, status_none: none } }),
  );

const sumOf = (clusters: readonly Cluster[], name: string) =>
  clusters.reduce((sum, { byStatus }) => sum + (byStatus[name] ?? 0), 0);

test("clusters do not overlap at any zoom, and each prospect is in exactly one of them", () => {
  fc.assert(
    fc.property(
      fc.array(cluster, { maxLength: 60, size: "max" }),
      fc.integer({ min: 0, max: 160 }).map((step) => step / 10),
      (clusters, zoom) => {
        const shown = withoutOverlaps(clusters, zoom);
        const scale = 512 * 2 ** zoom;
        for (const [i, one] of shown.entries()) {
          for (const other of shown.slice(i + 1)) {
            const pixels = Math.hypot(one.x - other.x, one.y - other.y) * scale;
            expect(pixels).toBeGreaterThanOrEqual(radiusOf(one.count) + radiusOf(other.count));
          }
          expect(sumOf([one], "status_1") + sumOf([one], "status_none")).toBe(one.count);
        }
        for (const name of ["status_1", "status_none"]) expect(sumOf(shown, name)).toBe(sumOf(clusters, name));
      },
    ),
  );
});

test("clusters that are far enough apart stay as they are", () => {
  const far = [0.2, 0.3].map((x): Cluster => ({ x, y: 0.3, count: 9, byStatus: { status_1: 9 } }));
  expect(withoutOverlaps(far, 4)).toEqual(far);
});
