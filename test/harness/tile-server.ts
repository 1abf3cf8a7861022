/** Simulates a provider of street maps, because the tests have no internet: a style, its TileJSON, and tiles with one street. */
import { EXTENT } from "#shared/map/tile.ts";
import { Layer, vectorTile } from "#shared/map/vector-tile.ts";
import { type LocalServer, serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { rectangle } from "./rings.ts";

const layer = "transportation";
export const ATTRIBUTION = "Streets of the tests";

export async function startTileServer(): Promise<LocalServer> {
  const tile = tileWithStreet();
  const server = await serveOnLoopback(async (request, response) => {
    const { pathname, origin } = new URL(request.url ?? "/", `http://${request.headers.host}`);
    const [type, body] = /^\/tiles\/\d+\/\d+\/\d+\.pbf$/.test(pathname)
      ? ["application/vnd.mapbox-vector-tile", tile]
      : ["application/json", JSON.stringify(pathname === "/planet" ? tileJson(origin) : styleOf(origin, pathname))];
    response.writeHead(200, { "Content-Type": type, "Access-Control-Allow-Origin": "*" }).end(body);
  });
  server.unref();
  return server;
}

function tileWithStreet(): Uint8Array {
  const street = new Layer(layer);
  street.addPolygon([rectangle(0, EXTENT * 0.45, EXTENT, EXTENT * 0.55)], { name: "Test Street" });
  return vectorTile([street]);
}

const tileJson = (origin: string) => ({
  tilejson: "3.0.0",
  tiles: [`${origin}/tiles/{z}/{x}/{y}.pbf`],
  minzoom: 0,
  maxzoom: 14,
  attribution: `<a href="https://example.com">${ATTRIBUTION}</a>`,
});

const styleOf = (origin: string, path: string) => ({
  version: 8,
  sources: { streets: { type: "vector", url: `${origin}/planet` } },
  layers: [
    { id: "background", type: "background", paint: { "background-color": path === "/dark" ? "#101010" : "#f0f0f0" } },
    { id: "roads", type: "fill", source: "streets", "source-layer": layer, paint: { "fill-color": "#d0d0d0" } },
  ],
});
