/** Lists prospects with filters, the exact total, and page numbers. */
import * as z from "zod/mini";
import type { Caller } from "#shared/auth/caller.ts";
import { type Criteria, passes } from "#shared/company-index/criteria.ts";
import { isStale } from "#shared/company-index/read/company-index.ts";
import { type ProspectRef, pageOf } from "#shared/company-index/search/page.ts";
import type { ReadContext } from "#shared/context.ts";
import { explain, pageSizeText } from "#shared/documentation.ts";
import { TableBusy } from "#shared/errors.ts";
import { metersBetween } from "#shared/geometry/distance.ts";
import { fingerprint, unconditional, type Validator } from "#shared/http/etag.ts";
import * as limits from "#shared/limits.ts";
import { nextAppointment } from "#shared/prospects/agenda.ts";
import { filterObject, filterParameters, filterTexts, Meters, withNear } from "#shared/prospects/filter.ts";
import { findFiltered, type ShapedFilter } from "#shared/prospects/find.ts";
import { indexRow } from "#shared/prospects/indexed.ts";
import { pageRows } from "#shared/prospects/list/page-rows.ts";
import { presentProspect } from "#shared/prospects/present.ts";
import { Prospect } from "#shared/prospects/schema.ts";
import type { ListedRow, StoredAppointment } from "#shared/prospects/stored.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { RingInput } from "#shared/reference/polygon.ts";
import { Id, named, PageSize, PositiveInteger } from "#shared/schema.ts";

export const ListQuery = z
  .object({
    ...filterParameters,
    page: z._default(PositiveInteger, 1),
    pageSize: z._default(PageSize, limits.pageSizeDefault),
  })
  .check(withNear());
export type ListQuery = z.output<typeof ListQuery>;

/* @__PURE__ */ explain([ListQuery], () => ({
  fields: {
    ...filterTexts(),
    page: { description: "From 1. A page past the end is empty.", example: 1 },
    pageSize: pageSizeText(" The answer names the size used."),
  },
}));

/** The body of POST /api/prospects/search has the same filters, some of them as numbers instead of texts. */
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

export const ListedProspect = named(
  "ListedProspect",
  z.object({ ...Prospect.shape, distanceMeters: z.optional(z.number().check(z.minimum(0))) }),
  "A prospect as lists show it.",
);

/* @__PURE__ */ explain([ListedProspect], () => ({
  fields: {
    appointments: "The soonest upcoming appointment that is scheduled, or an empty list.",
    distanceMeters: "The distance from the point of the filter `near`. Absent without this filter.",
  },
}));

export const ProspectPage = named(
  "ProspectPage",
  z.object({ items: z.array(ListedProspect), total: z.int(), page: z.int(), pageSize: z.int() }),
  "One page of prospects, newest first. `total` counts all matches.",
);
export type ProspectPage = z.infer<typeof ProspectPage>;

/* @__PURE__ */ explain([ProspectPage], () => ({
  fields: {
    items: "One page, newest first.",
    total: "The exact number of all matches.",
    page: "The requested page.",
    pageSize: `The size used: at most ${limits.pageSizeMax}.`,
  },
}));

/** Maximum reads of the index for one page. The index is read again if a row of the page was written after the read. */
const SNAPSHOTS = 10;
/**
 * In the first attempts, each row of the page must have the version that the index has. In later attempts, a row may be newer if it still
 * belongs to the page. Otherwise a page with many concurrent writes might never succeed.
 */
const EXACT_SNAPSHOTS = 2;

/** Reads the index, and then the rows of the page. Throws TableBusy if the rows keep changing. */
export async function listProspects<Current = never>(
  context: ReadContext,
  caller: Caller,
  query: ListQuery & ShapedFilter,
  validator: Validator<Current> = unconditional,
): Promise<ProspectPage | Current> {
  const { page, pageSize, ...filter } = query;
  const { companyId } = caller;
  for (let snapshots = 0; snapshots < SNAPSHOTS; snapshots++) {
    const { names, criteria, matches } = await findFiltered(context, caller, filter);
    const refs = pageOf(matches, (page - 1) * pageSize, pageSize);
    const fingerprintOf = (rows: readonly Versioned[]): string =>
      fingerprint("list", companyId, names.version, page, pageSize, matches.total, ...rows.flatMap(versionOf));
    const notModified = validator.isAsked ? validator.check(fingerprintOf(refs), context.clock.now()) : undefined;
    if (notModified !== undefined) return notModified;
    const accepts = (row: ListedRow): boolean =>
      snapshots >= EXACT_SNAPSHOTS &&
      belongs(row, criteria, names) &&
      refs.some((ref) => ref.id === row.id && isAsFar(row, ref, criteria));
    const rows = await pageRows(context.table, companyId, names.version, refs, accepts);
    if (isStale(rows)) continue;
    const now = context.clock.now();
    const upcoming = await Promise.all(rows.map((row) => nextAppointment(context.table, row, now)));
    // The ETag depends on the shown rows, because one of them may be newer than the index.
    validator.tag(fingerprintOf(rows), validUntil(upcoming));
    const items = rows.map((row, i) => listed(presentProspect(row, upcoming[i], names), refs[i]));
    return { items, total: matches.total, page, pageSize };
  }
  throw new TableBusy(`the page of company ${companyId} keeps changing`);
}

/** True if the row still has the distance by which the index has sorted it. */
const isAsFar = ({ lat, lng }: ListedRow, { distanceMeters }: ProspectRef, { near }: Criteria): boolean =>
  near === undefined || (lat !== null && lng !== null && metersBetween(near, lat, lng) === distanceMeters);

const listed = (prospect: Prospect, { distanceMeters }: Pick<ProspectRef, "distanceMeters"> = {}) =>
  distanceMeters === undefined ? prospect : { ...prospect, distanceMeters };

type Versioned = Pick<ListedRow, "id" | "version">;
const versionOf = ({ id, version }: Versioned): number[] => [id, version];

/** Returns the earliest start of the shown appointments. After this time, the response differs even without a write. */
function validUntil(upcoming: readonly (StoredAppointment | undefined)[]): number | undefined {
  const starts = upcoming.flatMap((appointment) =>
    appointment === undefined ? [] : [Date.parse(appointment.startAt)],
  );
  return starts.length === 0 ? undefined : Math.min(...starts);
}

/** True if the row passes the filters, without a search in notes, and the dictionary contains its status, assignee and tags. */
function belongs(row: ListedRow, criteria: Criteria, { statuses, tags, users }: Dictionary): boolean {
  const { statusId, assignedToUserId, tagIds } = row;
  const isNamed =
    (statusId === null || statuses.has(statusId)) &&
    (assignedToUserId === null || users.has(assignedToUserId)) &&
    tagIds.every((id) => tags.has(id));
  return row.deletedAt === undefined && isNamed && passes(criteria, indexRow(row), () => false);
}
