/** Finds rights that a deployment must not remove yet, because CodeDeploy replaces a function step by step but its rights at once. */
import * as z from "zod/mini";
import { readConfig } from "../settings/config.ts";
import { isGradual } from "../stack/rollout.ts";
import { roleOfFunction, templatesWithoutCode } from "../synth.ts";
import { lostRights, Right, rightsOf } from "./rights.ts";

export const RightsByFile = z.record(z.string(), z.array(Right));
export type RightsByFile = z.infer<typeof RightsByFile>;

export async function gradualRights(): Promise<RightsByFile> {
  const { Resources } = (await templatesWithoutCode(readConfig({ preset: "production" }))).service;
  const rights = Object.values(Resources).flatMap((resource) => {
    const file = String(resource.Metadata.file);
    const role = roleOfFunction(resource);
    if (role === undefined || !isGradual(file)) return [];
    return [[file, rightsOf(Resources[role]?.Properties.Policies)] as const];
  });
  return Object.fromEntries(rights.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns a message for each right of `before` that the same function no longer has. A function that no longer exists needs no rights. */
export const removedRights = (before: RightsByFile, now: RightsByFile): string[] =>
  Object.entries(before).flatMap(([file, rights]) =>
    lostRights(rights, now[file] ?? rights).map(
      ({ action, on, keys = ["*"] }) => `${file} loses the right ${action} on ${on} for keys ${keys.join(", ")}`,
    ),
  );
