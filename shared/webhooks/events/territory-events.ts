/** Old and new row of a territory -> what happened to it. */

import type { StoredTerritory } from "#shared/territories/territories.ts";
import { presentTerritory } from "#shared/territories/territories.ts";
import { type DomainEvent, eventOf } from "#shared/webhooks/events/catalogue.ts";

/** At most one: every write of the row that moves its version makes it, changes it or hides it. */
export function territoryEvents(before: StoredTerritory | undefined, after: StoredTerritory): DomainEvent[] {
  if (before !== undefined && (before.deletedAt !== undefined || before.version === after.version)) return [];
  return [eventOf(after, eventName(before, after), { territory: presentTerritory(after) })];
}

/** A deleted one gets another key: its row there is a new one. */
function eventName(before: StoredTerritory | undefined, after: StoredTerritory) {
  if (after.deletedAt !== undefined) return "territory.deleted";
  return before === undefined ? "territory.created" : "territory.updated";
}
