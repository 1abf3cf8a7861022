/** The doors that the user has visited today. This device stores them, so that the user can close the tab and continue later. */

export interface Walk {
  /** The key of the door that was open last. */
  readonly door: string | undefined;
  /** The keys of the doors that were visited today, the newest last. */
  readonly visited: readonly string[];
}

/** Maximum number of stored keys. A rep visits fewer doors on a day. */
const MOST = 1_000;

export function storedWalk(name: string, now: Date): Walk {
  const [day, door = "", ...visited] = (localStorage.getItem(name) ?? "").split("\n");
  return { door: door === "" ? undefined : door, visited: day === now.toDateString() ? visited : [] };
}

export function storeWalk(name: string, { door = "", visited }: Walk, now: Date): void {
  localStorage.setItem(name, [now.toDateString(), door, ...visited.slice(-MOST)].join("\n"));
}
