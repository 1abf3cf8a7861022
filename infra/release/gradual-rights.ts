/**
 * Compares the rights of the functions that CodeDeploy replaces step by step with those of the last release. A deployment changes the
 * rights at once. For five more minutes, most invocations of these functions still run the code of the last release. So a deployment must
 * not remove a right that this code needs.
 */
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
