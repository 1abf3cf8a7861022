/** The shapes that the browser tests draw on the map, and the schema of the files in which territories are exported. */
import * as z from "zod/mini";

export const GeoJson = z.object({
  type: z.literal("FeatureCollection"),
  features: z.array(
    z.object({
      type: z.literal("Feature"),
      properties: z.object({ name: z.string() }),
      geometry: z.object({ type: z.literal("Polygon"), coordinates: z.array(z.array(z.array(z.number()))) }),
    }),
  ),
});

/** The corners of an area that contains Ann and Bob, two prospects of the map tests. */
export const around = [
  [39.77, -104.97],
  [39.77, -104.94],
  [39.74, -104.94],
  [39.74, -104.97],
] as const;

type Point = readonly [x: number, y: number];

/**
 * Returns points on the line through the given points: six points from each given point to the next one. The sixth is the next given point
 * itself.
 */
export const stepsOf = (points: readonly Point[]): Point[] =>
  points.slice(1).flatMap(([x, y], index) => {
    const [fromX, fromY] = points[index] ?? [x, y];
    return [1, 2, 3, 4, 5, 6].map(
      (step) => [fromX + ((x - fromX) * step) / 6, fromY + ((y - fromY) * step) / 6] as const,
    );
  });
