/**
 * Filters prospects as the specification of the lists describes. The tests compare its results with those of the service's filters. Both use
 * the same function for comma-separated lists, which filter.test.ts tests with a table.
 */
import { commaList } from "#shared/prospects/filter.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";

/** The names of statuses, tags and users of a company. The ids of statuses begin at 101, of users at 201, and of tags at 301. */
export interface Names {
  readonly statuses: readonly string[];
  readonly tags: readonly string[];
  readonly people: readonly { readonly firstName: string; readonly lastName: string }[];
}

type Parameter =
  | "bbox"
  | "dateFrom"
  | "dateTo"
  | "status"
  | "assignedToUserId"
  | "rep"
  | "tagId"
  | "city"
  | "sourceId"
  | "search";
type Query = { readonly [name in Parameter]: string | undefined };

/** Normalises a text. It handles only the letters that occur in these tests. */
const lower = (text: string): string =>
  text.trim().toLowerCase().replaceAll("e\u0301", "é").replaceAll("ß", "ss").replaceAll("ς", "σ");
const searched = (text: string): string => lower(text).replaceAll("é", "e");
const listed = (raw: string | undefined): string[] => valuesIn(raw).map(lower);
const valuesIn = (raw = ""): string[] =>
  commaList(raw)
    .map((value) => value.trim())
    .filter(Boolean);

/** Returns true if the query finds the prospect. `who` is an admin, a user who sees all prospects, or the rep with the id 201. */
export function oracle(row: StoredProspect, notes: readonly string[], raw: Query, who: string, names: Names): boolean {
  const oneOf = (list: string[], values: (string | undefined)[]) =>
    list.length === 0 || values.some((value) => value !== undefined && list.includes(lower(value)));
  const rep = names.people[(row.assignedToUserId ?? 0) - 201];
  const isAdmin = who === "admin";
  return (
    (who !== "rep" || row.assignedToUserId === 201) &&
    (raw.bbox === undefined || isInside(row, raw.bbox.split(",").map(Number))) &&
    isWithin(Date.parse(row.createdAt), raw) &&
    oneOf(listed(raw.status), [names.statuses[(row.statusId ?? 0) - 101]]) &&
    oneOf(
      listed(raw.tagId),
      row.tagIds.map((id) => names.tags[id - 301]),
    ) &&
    oneOf(listed(raw.city), [row.address?.city]) &&
    isOfSource(row.sourceId, raw.sourceId) &&
    (!isAdmin || oneOf(listed(raw.assignedToUserId), [String(row.assignedToUserId ?? "unassigned")])) &&
    (!isAdmin || oneOf(listed(raw.rep), [rep && `${rep.firstName} ${rep.lastName}`])) &&
    searched(raw.search ?? "")
      .split(" ")
      .every((word) => isFound(word, row, notes))
  );
}

function isOfSource(sourceId: string | null, raw: string | undefined): boolean {
  const wanted = valuesIn(raw);
  return wanted.length === 0 || wanted.some((value) => value === sourceId);
}

function isInside({ lat, lng }: StoredProspect, [west = 0, south = 0, east = 0, north = 0]: number[]): boolean {
  if (lat === null || lng === null || lat < south || lat > north) return false;
  return west <= east ? west <= lng && lng <= east : !(east < lng && lng < west);
}

function isWithin(at: number, { dateFrom, dateTo }: Query): boolean {
  const last = dateTo?.length === 10 ? `${dateTo}T23:59:59.999Z` : dateTo;
  return (dateFrom === undefined || at >= Date.parse(dateFrom)) && (last === undefined || at <= Date.parse(last));
}

function isFound(word: string, row: StoredProspect, notes: readonly string[]): boolean {
  const phones = [row.phoneNumber, row.secondaryPhoneNumber];
  const { address1, city, state, zip } = row.address ?? {};
  const texts = [row.name, row.emailAddress, ...phones, address1, city, state, zip, ...notes];
  const digits = (text: string | null): string => (text ?? "").replace(/\D/g, "");
  const isNumber = /^[\d()+ -]*\d[\d()+ -]*$/.test(word);
  return (
    texts.some((text) => searched(text ?? "").includes(word)) ||
    (isNumber && phones.some((phone) => digits(phone).includes(digits(word))))
  );
}
