/** The center and the zoom of the map in the URL of the page, as `at=-104.95,39.75,12`. */
import type { Map as MapLibre } from "maplibre-gl";
import { AT } from "../prospects/filter.ts";

export interface Camera {
  readonly center: [lng: number, lat: number];
  readonly zoom: number;
}

/** Decimal places of the coordinates and the zoom in the URL. Five decimal places of a degree are about a metre. */
const DECIMALS = 5;
const MOST_ZOOM = 24;

/** Reads the query of a URL. Returns undefined if it has no valid camera. */
export function cameraIn(search: string): Camera | undefined {
  const text = new URLSearchParams(search).get(AT) ?? "";
  if (!/^-?\d+(\.\d+)?,-?\d+(\.\d+)?,\d+(\.\d+)?$/.test(text)) return undefined;
  const [lng = Number.NaN, lat = Number.NaN, zoom = Number.NaN] = text.split(",").map(Number);
  return Math.abs(lng) <= 180 && Math.abs(lat) <= 90 && zoom <= MOST_ZOOM ? { center: [lng, lat], zoom } : undefined;
}

/** Returns the rounded center and zoom of the map as text. The text changes only when the user or the page moves the map. */
export function cameraOf(map: MapLibre): string {
  const { lng, lat } = map.getCenter().wrap();
  return [lng, lat, map.getZoom()].map((value) => value.toFixed(DECIMALS)).join();
}

/**
 * Returns the query `search` with `camera` as its only camera, or with none if `camera` is undefined. The camera is added as text, because
 * `URLSearchParams` would escape its commas.
 */
export function withCamera(search: string, camera: string | undefined): string {
  const parameters = new URLSearchParams(search);
  parameters.delete(AT);
  const others = parameters.toString();
  return [others, camera === undefined ? "" : `${AT}=${camera}`].filter((part) => part !== "").join("&");
}
