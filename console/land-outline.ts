/**
 * Makes the outline of the land from the npm package world-atlas. Maps show the outline if there is no street map, or if the server of the
 * street map does not answer.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { feature } from "topojson-client";
import type { Plugin } from "vite";

const SOURCE = "virtual:land-outline";
/** Decimal places of the outline's coordinates. Two are enough for this coarse outline, because 0.01 degrees are about a kilometre. */
const DECIMALS = 2;

/** Returns a Vite plugin for the module `virtual:land-outline`, which exports the URL of the outline in GeoJSON. */
export function landOutline(): Plugin {
  let geoJson: string | undefined;
  return {
    name: "land-outline",
    resolveId: (id) => (id === SOURCE ? `\0${SOURCE}` : undefined),
    load(id) {
      if (id !== `\0${SOURCE}`) return undefined;
      geoJson ??= outline();
      if (this.environment.mode === "dev") {
        return `export const landUrl = ${JSON.stringify(`data:application/geo+json,${encodeURIComponent(geoJson)}`)}`;
      }
      const file = this.emitFile({ type: "asset", name: "land.json", source: geoJson });
      return `export const landUrl = import.meta.ROLLUP_FILE_URL_${file}`;
    },
  };
}

function outline(): string {
  const path = createRequire(import.meta.url).resolve("world-atlas/land-110m.json");
  const topology = JSON.parse(readFileSync(path, "utf8"));
  return JSON.stringify(feature(topology, topology.objects.land), (_, value: unknown) =>
    typeof value === "number" ? Number(value.toFixed(DECIMALS)) : value,
  );
}
