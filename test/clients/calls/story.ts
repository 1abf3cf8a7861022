/** The requests that every generated client sends. The code of a client compiles only if its generated types fit the type `Calls`. */

export interface Calls {
  me(): Promise<{ user: { email: string } }>;
  statuses(): Promise<{ id: number; value: string }[]>;
  createTag(value: string): Promise<{ id: number }>;
  createProspect(name: string): Promise<{ id: number; lat: number | null; address: { city: string } | null }>;
  setTags(id: number, tagIds: number[]): Promise<{ tags: { tag: { id: number } }[] }>;
  list(search: string): Promise<{ items: { id: number }[]; total: number }>;
  changeStatus(id: number, statusId: number): Promise<{ currentStatus: { value: string } | null }>;
  createNote(id: number, body: string): Promise<{ body: string }>;
  detail(id: number): Promise<{ notes: { body: string }[]; assignedTo: { email: string } | null }>;
  /** Some generators declare a position of the polygon as a tuple, and others as an array. An argument of the tuple type fits both. */
  createTerritory(polygon: [number, number][]): Promise<{ polygon: number[][] }>;
  remove(id: number): Promise<{ id: number }>;
  changes(): Promise<{ items: Change[] }>;
}

/** A client compiles only if `data` of an item has the type that belongs to the item's `type`. */
type Change =
  | { type: "prospects"; data?: { name: string | null } }
  | { type: "notes"; data?: { body: string; prospectId: number } }
  | { type: "appointments"; data?: { title: string; prospectId: number } }
  | { type: "territories"; data?: { polygon: number[][] } }
  | { type: "statuses" | "tags"; data?: { value: string } }
  | { type: "users"; data?: { email: string } };

/** Returns a text of each item: the name of a prospect, the body of a note, or the e-mail address of a user. */
const namesIn = (items: readonly Change[]): (string | null | undefined)[] =>
  items.map((item) => {
    if (item.type === "prospects") return item.data?.name;
    if (item.type === "notes") return item.data?.body;
    return item.type === "users" ? item.data?.email : undefined;
  });

/** The code of the clients needs only this part of Node.js, so the type definitions of Node.js are not installed. */
declare const process: { readonly env: Readonly<Record<string, string | undefined>> };

export const baseUrl = process.env.BASE_URL ?? "";
export const token = process.env.TOKEN ?? "";

/** Sends the requests, and prints some fields of each answer as JSON. */
export async function printAnswers(calls: Calls, name: string): Promise<void> {
  const { user } = await calls.me();
  const status = (await calls.statuses()).find(({ value }) => value === "Interested");
  const tag = await calls.createTag(`Tag ${name}`);
  const { id, lat, address } = await calls.createProspect(name);
  const { tags } = await calls.setTags(id, [tag.id]);
  const { items, total } = await calls.list(name);
  const { currentStatus } = await calls.changeStatus(id, status?.id ?? 0);
  await calls.createNote(id, "Wants a quote.");
  const { notes, assignedTo } = await calls.detail(id);
  const { items: changes } = await calls.changes();
  const ring: [number, number][] = [
    [-104.987, 39.74],
    [-104.973, 39.74],
    [-104.973, 39.727],
  ];
  const { polygon } = await calls.createTerritory(ring);
  const removed = await calls.remove(id);
  const facts = {
    email: user.email,
    lat,
    city: address?.city,
    isTagged: tags[0]?.tag.id === tag.id,
    isListed: items[0]?.id === id && total === 1,
    status: currentStatus?.value,
    notes: notes.map(({ body }) => body),
    assignedTo,
    isInFeed: [name, "Wants a quote.", user.email].every((shown) => namesIn(changes).includes(shown)),
    isSamePolygon: JSON.stringify(polygon) === JSON.stringify(ring),
    isRemoved: removed.id === id,
  };
  console.log(JSON.stringify(facts));
}

export const prospect = (name: string) => ({
  name,
  lat: 39.7392,
  lng: -104.9903,
  address: { address1: "1437 Bannock St", city: "Denver", state: "CO", zip: "80202" },
  assignedToUserId: null,
});
