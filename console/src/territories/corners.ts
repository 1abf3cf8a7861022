/** Converts the corners of a polygon to the text that a user edits, and back. */
import { FieldError } from "../api/faults.ts";
import { closed } from "../map/features.ts";

/** The name of the field with the corners in the request. */
export const POLYGON = "polygon" as const;

/** Returns the number of corners. If a stored polygon repeats its first position at the end, this position counts once. */
export const cornersIn = (polygon: readonly number[][]): number => Math.max(0, closed(polygon).length - 1);

/** Returns one line of text for each corner. */
export const textOf = (ring: readonly number[][]): string => ring.map((position) => position.join(", ")).join("\n");

/**
 * Reads the corners that the user has typed, one in each line. Returns the corners, or what is wrong with them. Ignores blank lines.
 */
export function ringOf(text: string): number[][] | FieldError {
  const ring: number[][] = [];
  for (const [index, content] of text.split("\n").entries()) {
    if (content.trim() === "") continue;
    const position = content.split(",").map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
    const [lng = Number.NaN, lat = Number.NaN] = position;
    const line = `line ${index + 1}`;
    if (position.length !== 2 || !Number.isFinite(lng) || !Number.isFinite(lat)) {
      return new FieldError(POLYGON, `Write a longitude and a latitude in ${line}, such as -104.99, 39.74.`);
    }
    const order = "The longitude comes first.";
    if (Math.abs(lat) > 90) return new FieldError(POLYGON, `The latitude in ${line} must be from -90 to 90. ${order}`);
    if (Math.abs(lng) > 180) return new FieldError(POLYGON, `The longitude in ${line} must be from -180 to 180.`);
    ring.push(position);
  }
  return ring.length === 1 || ring.length === 2 ? new FieldError(POLYGON, "Write at least three corners.") : ring;
}
