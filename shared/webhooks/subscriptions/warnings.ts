/** Warns of registrations that are accepted but can send nothing: their event, or a field of their filter, does not exist. */
import * as z from "zod/mini";
import { isObject } from "#shared/json.ts";
import { nearestOf } from "#shared/nearest.ts";
import { Prospect } from "#shared/prospects/schema.ts";
import { catalogue, type EventName } from "#shared/webhooks/catalogue.ts";
import type { Registration } from "#shared/webhooks/subscriptions/schema.ts";

type Fields = Readonly<Record<string, z.core.SomeType>>;

const events: ReadonlyMap<string, (typeof catalogue)[EventName]> = new Map(Object.entries(catalogue));

/** Returns an empty list if the registration can send something. The filter of an unknown event is not checked. */
export function warningsOf(registration: Pick<Registration, "event" | "filter" | "triggerMode">): string[] {
  const { event, filter, triggerMode } = registration;
  const data = events.get(event);
  if (data === undefined) {
    const effect = triggerMode === "manual" ? "only its button sends something" : "nothing is sent";
    const nearest = nearestOf(event, events.keys());
    const hint = nearest === undefined ? "" : ` Did you mean ${nearest}?`;
    return [`No event has the name ${event}, so ${effect}.${hint}`];
  }
  // The data of a manual delivery contains the prospect, whatever its event is.
  const fields: Fields = { prospect: Prospect, ...data.shape };
  const unknown = pathsIn(filter ?? {}).filter((path) => !hasPath(fields, path.split(".")));
  return unknown.length === 0
    ? []
    : [`The data of ${event} has no ${unknown.join(", ")}, so the filter never matches.`];
}

/** Returns the full path of each key. A key whose value is another filter is replaced by the paths of that filter, unless it is empty. */
const pathsIn = (filter: Record<string, unknown>, above = ""): string[] =>
  Object.entries(filter).flatMap(([key, value]) =>
    isObject(value) && Object.keys(value).length > 0 ? pathsIn(value, `${above}${key}.`) : [`${above}${key}`],
  );

function hasPath(fields: Fields, [step = "", ...rest]: readonly string[]): boolean {
  const field = Object.hasOwn(fields, step) ? fields[step] : undefined;
  return field !== undefined && (rest.length === 0 || hasInner(field, rest));
}

/** Returns whether data of this schema can have the path. The schema of custom fields, which may have any names, is a ZodMiniCustom. */
function hasInner(schema: z.core.SomeType, path: readonly string[]): boolean {
  if (schema instanceof z.ZodMiniNullable || schema instanceof z.ZodMiniOptional) {
    return hasInner(schema._zod.def.innerType, path);
  }
  return schema instanceof z.ZodMiniObject ? hasPath(schema.shape, path) : schema instanceof z.ZodMiniCustom;
}
