/** The body of POST /api/prospects/search. */
import * as z from "zod/mini";
import { explain } from "#shared/documentation.ts";
import * as limits from "#shared/limits.ts";
import { filterObject, filterParameters, filterTexts, Meters, withNear } from "#shared/prospects/filter.ts";
import { RingInput } from "#shared/reference/polygon.ts";
import { Id, named } from "#shared/schema.ts";

const SearchFilter = named(
  "SearchFilter",
  filterObject({
    ...filterParameters,
    territoryId: z.optional(Id),
    maxMeters: z.optional(Meters),
    polygon: z.optional(RingInput),
  }).check(withNear()),
  "The filters of a list, and a polygon.",
);

export const SearchBody = named(
  "ProspectSearch",
  z.object({
    filter: z._default(z.optional(SearchFilter), {}),
    page: z._default(z.int().check(z.minimum(1)), 1),
    pageSize: z._default(
      z.pipe(
        z.int().check(z.minimum(1)),
        z.transform((size) => Math.min(size, limits.pageSizeMax)),
      ),
      limits.pageSizeDefault,
    ),
  }),
  "A search for prospects.",
);

/* @__PURE__ */ explain([SearchFilter], () => ({
  fields: {
    ...filterTexts(),
    territoryId: "Id of a territory, as a number. The rules are those of the list.",
    maxMeters: "The largest distance from `near` in metres, as a number. Needs `near`.",
    polygon: `A ring of ${limits.polygonPointsMin} to ${limits.polygonPointsMax} points \`[lng, lat]\`. Matches prospects inside it by the even-odd rule, those on its boundary included. It may be closed or open. An edge whose longitudes differ by more than 180 and less than 360 degrees crosses the 180th meridian, unless the ring encloses a pole.`,
  },
}));
/* @__PURE__ */ explain([SearchBody], () => ({
  fields: {
    filter: "The filters. Without them, the search finds all prospects that the caller may see.",
    page: "From 1. A page past the end is empty.",
    pageSize: `A larger value counts as ${limits.pageSizeMax}. The answer names the size used.`,
  },
  example: {
    filter: {
      status: "New",
      polygon: [
        [-105.1, 39.6],
        [-104.8, 39.6],
        [-104.8, 39.9],
      ],
    },
    page: 1,
    pageSize: 50,
  },
}));
