/** The coordinate reference systems of GeoJSON files from before RFC 7946, which still occur. */
import * as z from "zod/mini";

const Crs = z.object({ properties: z.object({ name: z.string() }) });

/** CRS84 and EPSG:4326, also as URNs and URLs. Map programs write longitude before latitude for both. */
const known =
  /^(?:(?:OGC:)?CRS:?84|EPSG:4326|urn:(?:x-)?ogc:def:crs:(?:OGC:[\d.]*:CRS:?84|EPSG:[\d.]*:4326)|https?:\/\/www\.opengis\.net\/def\/crs\/(?:OGC\/[\d.]+\/CRS84|EPSG\/\d+\/4326))$/i;

const nameOf = (crs: unknown): string | undefined => {
  const named = z.safeParse(Crs, crs);
  return named.success ? named.data.properties.name : undefined;
};

export const isKnownCrs = (crs: unknown): boolean => crs == null || known.test(nameOf(crs)?.trim() ?? "");

/** Follows the name of the value. */
export const foreignCrs = (crs: unknown): string =>
  `${found(nameOf(crs))}, and the service reads only CRS84 and EPSG:4326`;

const found = (name: string | undefined): string =>
  name === undefined ? "has no text in properties/name" : `is ${name.slice(0, 100)}`;
