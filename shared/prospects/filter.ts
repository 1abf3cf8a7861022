/** The filters of lists, maps, exports and bulk jobs, and their conversion to criteria of the company index. */
import * as z from "zod/mini";
import { type Caller, isAdmin, visibleAssignee } from "#shared/auth/caller.ts";
import { trimmed, wordsIn } from "#shared/blank.ts";
import { folded, searchable } from "#shared/caseless.ts";
import { circleArea } from "#shared/company-index/areas.ts";
import { type Area, type Criteria, type SearchWord, withoutImplied } from "#shared/company-index/criteria.ts";
import { explain } from "#shared/documentation.ts";
import { FARTHEST_METERS } from "#shared/geometry/distance.ts";
import { validate } from "#shared/http/validate.ts";
import { type DayEdge, IsoTime, instantOf } from "#shared/instant.ts";
import * as limits from "#shared/limits.ts";
import { digitsOf, wholeNumber } from "#shared/prospects/indexed.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { fullName } from "#shared/reference/users.ts";
import { coordinate, text } from "#shared/schema.ts";

/** One value of a comma-separated list and its comma. A value in double quotes may contain commas, and doubled quotes, as in CSV. */
const entry = /\s*(?:"((?:[^"]|"")*)"\s*|([^,]*)),/gy;

/** Splits a comma-separated list. The values are not trimmed, and may be empty. */
export const commaList = (text: string): string[] =>
  Array.from(`${text},`.matchAll(entry), ([, quoted, plain = ""]) => quoted?.replaceAll('""', '"') ?? plain);

export const SearchText = text(limits.search);

/** A prospect matches if each word occurs in its name, phone numbers, e-mail address, address or notes. */
export const Search = z.pipe(
  SearchText,
  z.transform((query): SearchWord[] =>
    withoutImplied(
      wordsIn(query)
        .map((word) => searchable(word, limits.search))
        .filter((word) => word !== "")
        .map((word) => ({ text: word, digits: phonesIn(word) })),
    ),
  ),
);
export type Search = z.output<typeof Search>;

/** A country calling code has at most this many digits (ITU-T E.164). */
const COUNTRY_CODE = 3;

/** A word without letters is also searched in phone numbers, and an international number also without its country code. */
function phonesIn(word: string): string[] {
  const digits = digitsOf(word);
  if (digits === "" || /\p{L}/u.test(word)) return [];
  if (!/^\+[\d()./-]+$/.test(word)) return [digits];
  const national = Array.from({ length: COUNTRY_CODE }, (_, i) => wholeNumber(digits.slice(i + 1)) ?? []);
  return [digits, ...national.flat()];
}

export const FilterText = z.string().check(z.maxLength(limits.queryParameter));

const readAs = <Value, Output>(read: (text: string) => Value, schema: z.ZodMiniType<Output, Awaited<Value>>) =>
  z.pipe(z.pipe(FilterText, z.transform(read)), schema);

/** A list without values does not filter. */
const valuesIn = (form: (value: string) => string) =>
  z.pipe(
    FilterText,
    z.transform((list) =>
      commaList(list)
        .map(form)
        .filter((value) => value !== ""),
    ),
  );

const Names = valuesIn(folded);
/** Source ids are compared exactly. */
const SourceIds = valuesIn(trimmed);

/** Ids of users, or `unassigned`, separated by commas. An unknown id matches no prospect. */
export const Assignees = readAs(
  (list) =>
    list
      .split(",")
      .map((token) => token.trim().toLowerCase())
      .filter((token) => token !== ""),
  z.array(
    z.union([z.literal("unassigned"), z.pipe(z.string().check(z.regex(/^[0-9]+$/)), z.transform(Number))], {
      error: "must hold user ids or `unassigned`",
    }),
  ),
);

/** The plus sign of a time offset arrives as a space if it is not percent-encoded. */
export const TimeParameter = readAs((value) => value.trim().replace(/ (?=\d\d:?\d\d$)/, "+"), IsoTime);

/** Converts a time to milliseconds since 1970, and a date to the first or last millisecond of this UTC day. */
export const dateBound = (edge: DayEdge) =>
  z.pipe(
    TimeParameter,
    z.transform((value) => instantOf(value, edge)),
  );

export const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const numberIn = (text: string): number => (decimal.test(text.trim()) ? Number(text) : Number.NaN);
const numbersIn = (list: string): number[] => list.split(",").map(numberIn);

const [Lat, Lng] = [coordinate(90), coordinate(180)];

/** `minLng,minLat,maxLng,maxLat`. If minLng is greater than maxLng, the box crosses the 180th meridian. */
const Bbox = readAs(
  numbersIn,
  z
    .tuple([Lng, Lat, Lng, Lat], { error: "must be four numbers: minLng,minLat,maxLng,maxLat" })
    .check(z.refine(([, minLat, , maxLat]) => minLat <= maxLat, { error: "minLat must not exceed maxLat" })),
);

const Near = readAs(
  numbersIn,
  z.pipe(
    z.tuple([Lat, Lng], { error: "must be two numbers: lat,lng" }),
    z.transform(([lat, lng]) => ({ lat, lng })),
  ),
);

export const Meters = z
  .number({ error: `must be a number of metres from 0 to ${Math.floor(FARTHEST_METERS)}` })
  .check(z.minimum(0), z.maximum(FARTHEST_METERS));
const MetersText = readAs(numberIn, Meters);

const TerritoryIdText = z.pipe(
  FilterText.check(z.regex(/^\s*[0-9]{1,15}\s*$/, { error: "must be the id of a territory" })),
  z.transform(Number),
);

/** Filters that the service ignores for users who are no admins, even if they are malformed. `representatives` validates them. */
const ForAdmins = z.string().check(z.meta({ maxLength: limits.queryParameter }));
export const RepresentativeFilter = z.object({ assignedToUserId: z.optional(Assignees), rep: z.optional(Names) });

export const filterParameters = {
  bbox: z.optional(Bbox),
  dateFrom: z.optional(dateBound("start")),
  dateTo: z.optional(dateBound("end")),
  updatedSince: z.optional(dateBound("start")),
  status: z.optional(Names),
  assignedToUserId: z.optional(ForAdmins),
  rep: z.optional(ForAdmins),
  tagId: z.optional(Names),
  city: z.optional(Names),
  sourceId: z.optional(SourceIds),
  search: z.optional(Search),
  territoryId: z.optional(TerritoryIdText),
  near: z.optional(Near),
  maxMeters: z.optional(MetersText),
};

/** Maps and exports ignore these parameters, so that a client may send them the query of a list. */
export const paging = ["page", "pageSize"] as const;

/** Refuses `maxMeters` without `near`. Every schema with the filters needs this check. */
export const withNear = <F extends { near?: unknown; maxMeters?: unknown }>() =>
  z.refine<F>(({ near, maxMeters }) => maxMeters === undefined || near !== undefined, {
    path: ["maxMeters"],
    error: "needs `near`",
  });
export const ProspectFilter = z.object(filterParameters).check(withNear());

export const filterTextsOf = <Text>(text: Text) =>
  ({
    bbox: text,
    dateFrom: text,
    dateTo: text,
    updatedSince: text,
    status: text,
    assignedToUserId: text,
    rep: text,
    tagId: text,
    city: text,
    sourceId: text,
    search: text,
    territoryId: text,
    near: text,
    maxMeters: text,
  }) satisfies Record<keyof typeof filterParameters, Text>;

/** The filters as strings, for the body of a request that creates a job. The job later parses these strings with `ProspectFilter`. */
export const filterBody = filterTextsOf(z.optional(FilterText));
export type ProspectFilter = z.output<typeof ProspectFilter>;

/** An error names at most this number of unknown filters, with this number of characters of each name. */
const [NAMED_FILTERS, FILTER_NAME] = [10, 40];

/** An unknown name is refused, because a misspelt filter would select more prospects than the client means. */
export const filterObject = <S extends z.core.$ZodLooseShape>(shape: S) =>
  z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== "unrecognized_keys") return undefined;
      const unknown = issue.keys.slice(0, NAMED_FILTERS).map((key) => `"${key.slice(0, FILTER_NAME)}"`);
      return `must not have ${unknown.join(", ")}. The filters are ${Object.keys(shape).join(", ")}.`;
    },
  });

const COMMA_LIST =
  'Comma-separated, compared without case; one of them must match. Put a value that contains a comma in double quotes (`"Washington, D.C.",Denver`), and double each quote inside it.';

export const filterTexts = () => ({
  bbox: {
    description:
      "`minLng,minLat,maxLng,maxLat` in degrees, edges included. A minLng above the maxLng crosses the antimeridian. Matches only prospects with both coordinates.",
    example: "-105.1,39.6,-104.8,39.9",
  },
  dateFrom: {
    description: "Created at or after: an ISO 8601 time, or a date for the start of that UTC day.",
    example: "2026-06-01",
  },
  dateTo: {
    description: "Created at or before: an ISO 8601 time, or a date for the end of that UTC day.",
    example: "2026-06-30",
  },
  updatedSince: {
    description:
      "Changed at or after: an ISO 8601 time, or a date for the start of that UTC day. Each change of a prospect counts, its creation included: of its fields, address, status, assignee or tags. Its notes and appointments do not count. Deleted prospects are left out; `GET /api/changes` names them.",
    example: "2026-06-01T08:00:00Z",
  },
  status: { description: `Values of statuses. ${COMMA_LIST}`, example: "New,Go Back" },
  assignedToUserId: {
    description:
      "Ids of assignees and `unassigned`, comma-separated. For admins and owners; the service ignores it from other users.",
    example: "7,unassigned",
  },
  rep: {
    description: `Full names of assignees. ${COMMA_LIST} For admins and owners; the service ignores it from other users.`,
    example: "Ravi Rep",
  },
  tagId: { description: `Values of tags, not their ids. ${COMMA_LIST}`, example: "Hail damage" },
  city: { description: `Cities. ${COMMA_LIST}`, example: "Denver,Aurora" },
  sourceId: {
    description: `Ids in the system that the prospects come from. Comma-separated, compared exactly, but without white space around them; one of them must match. Put a value that contains a comma in double quotes.`,
    example: "crm-1042,crm-1043",
  },
  search: {
    description: `Words that must all occur in name, phones (also as digits alone), e-mail, address or any note. Case, accents, full-width forms, ligatures, and kinds of quotes and hyphens make no difference. \`+13035550142\` also matches the phone \`(303) 555-0142\`, which lacks the country code. No character is a wildcard. At most ${limits.search} characters.`,
    example: "bannock 0142",
  },
  territoryId: {
    description:
      "Id of a territory. Matches prospects inside its polygon by the even-odd rule, those on its boundary included. An id that is unknown in the company matches nothing.",
    example: "412",
    schema: { type: "string", pattern: "^[0-9]{1,15}$" },
  },
  near: {
    description:
      "`lat,lng` in degrees. Orders the matches by their distance from this point on the great circle, then by id. Each item of a list then has `distanceMeters`. Matches only prospects with both coordinates.",
    example: "39.739,-104.99",
  },
  maxMeters: { description: "The largest distance from `near` in metres. Needs `near`.", example: "500" },
});
/* @__PURE__ */ explain([ProspectFilter], () => ({ fields: filterTexts() }));

/** Descriptions of the filters for `filterBody`, in which every filter is a text. */
export const filterBodyTexts = () => ({
  ...filterTexts(),
  territoryId: 'Id of a territory, as a text such as `"412"`. It has the same effect as in `GET /api/prospects`.',
  maxMeters: 'The largest distance from `near` in metres, as a text such as `"500"`. Needs `near`.',
});

/** Combines the filters with the caller's rights. An unknown name matches no prospect. A prospect must lie in all `areas`. */
export function criteriaOf(
  filter: ProspectFilter,
  caller: Caller,
  dictionary: Dictionary,
  areas: readonly Area[] = [],
): Criteria {
  const { bbox, dateFrom, dateTo, updatedSince, status, tagId, city, sourceId, search, near, maxMeters } = filter;
  const assignee = visibleAssignee(caller);
  const visible = assignee === undefined ? [] : [new Set<number | null>([assignee])];
  const chosen = isAdmin(caller) ? representatives(filter, dictionary) : [];
  return {
    box: bbox,
    areas: near === undefined || maxMeters === undefined ? areas : [...areas, circleArea(near, maxMeters)],
    near,
    onMap: near !== undefined,
    createdFrom: dateFrom,
    createdTo: dateTo,
    updatedFrom: updatedSince,
    statusIds: namedIds(status, dictionary.statuses.values(), ({ value }) => value),
    assigneeIds: [...visible, ...chosen].reduce<ReadonlySet<number | null> | undefined>(inBoth, undefined),
    tagIds: namedIds(tagId, dictionary.tags.values(), ({ value }) => value),
    cities: city === undefined || city.length === 0 ? undefined : new Set(city),
    sourceIds: sourceId === undefined || sourceId.length === 0 ? undefined : new Set(sourceId),
    words: search ?? [],
  };
}

function representatives(filter: ProspectFilter, dictionary: Dictionary): Set<number | null>[] {
  const { assignedToUserId: assignees = [], rep } = validate("query", RepresentativeFilter, filter);
  const byId = assignees.length === 0 ? [] : [new Set(assignees.map((id) => (id === "unassigned" ? null : id)))];
  const named = namedIds(rep, dictionary.users.values(), fullName);
  return named === undefined ? byId : [...byId, new Set<number | null>(named)];
}

/** Returns the values that are in both sets. Undefined means all values. */
export const inBoth = <T>(some: ReadonlySet<T> | undefined, others: ReadonlySet<T>): ReadonlySet<T> =>
  some === undefined ? others : new Set([...some].filter((value) => others.has(value)));

function namedIds<T extends { id: number }>(
  names: readonly string[] | undefined,
  entries: Iterable<T>,
  nameOf: (entry: T) => string,
): ReadonlySet<number> | undefined {
  if (names === undefined || names.length === 0) return undefined;
  const ids = new Set<number>();
  for (const entry of entries) if (names.includes(folded(nameOf(entry)))) ids.add(entry.id);
  return ids;
}
