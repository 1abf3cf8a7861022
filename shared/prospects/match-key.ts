/** The keys by which an import or a request can find an existing prospect. */
import * as z from "zod/mini";
import { folded } from "#shared/caseless.ts";
import type { StoredProspect } from "#shared/prospects/stored.ts";

export const MatchBy = z.enum(["id", "sourceId", "emailAddress"]);
export type MatchBy = z.infer<typeof MatchBy>;

/** What an import or a request does if exactly one existing prospect has the key. */
export const OnMatch = z.enum(["update", "skip", "create"]);
export type OnMatch = z.infer<typeof OnMatch>;

/** Equal keys have equal normal forms. An empty normal form means that there is no key. */
const normalised: Readonly<Record<MatchBy, (text: string) => string>> = {
  id: (text) => text.trim(),
  sourceId: (text) => text.trim(),
  emailAddress: folded,
};

export const keyIn = (by: MatchBy, cell: string): string | undefined => normalised[by](cell) || undefined;

export const isId = (key: string): boolean => /^[1-9]\d{0,15}$/.test(key) && Number.isSafeInteger(Number(key));

export type Keyed = Pick<StoredProspect, "id" | "sourceId" | "emailAddress">;

export function keyOf(by: MatchBy, prospect: Keyed): string | undefined {
  const key = prospect[by];
  return key === null ? undefined : keyIn(by, String(key));
}
