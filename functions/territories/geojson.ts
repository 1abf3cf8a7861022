/** GET /api/territories.geojson: lists the company's territories in GeoJSON. */
import { begun, jsonArray, streamText } from "#shared/http/streaming.ts";
import { featureOf, TerritoryCollection, TerritoryFeature } from "#shared/territories/geojson.ts";
import { listTerritories, type Territory } from "#shared/territories/territories.ts";

async function* featuresOf(territories: AsyncIterable<Territory>) {
  for await (const territory of territories) yield featureOf(territory);
}

export const handler = streamText(
  {
    summary: "List territories in GeoJSON",
    description:
      "All territories of the company as a GeoJSON FeatureCollection (RFC 7946), newest first. Each polygon has one closed, counter-clockwise ring; `GET /api/territories` returns it as it was sent. A territory without a polygon has the geometry null. An edge is a straight line between two positions. A territory that crosses the 180th meridian is cut there into a MultiPolygon.",
    allow: "everyone",
    scope: "territories:read",
    mediaType: "application/geo+json",
    response: TerritoryCollection,
  },
  async ({ context, caller }) => {
    // Waits for the first territory before the response begins. If reading it fails, the client still gets an error response.
    const features = await begun(jsonArray(TerritoryFeature, featuresOf(listTerritories(context, caller.companyId))));
    return (async function* () {
      yield '{"type":"FeatureCollection","features":';
      yield* features;
      yield "}";
    })();
  },
);
