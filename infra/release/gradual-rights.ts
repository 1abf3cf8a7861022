/**
 * Compares the rights of the functions that CodeDeploy replaces step by step with those of the last release. A deployment changes the
 * rights at once. For five more minutes, most invocations of these functions still run the code of the last release. So a deployment must
 * not remove a right that this code needs.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as z from "zod/mini";
import { readConfig } from "../settings/config.ts";
import { isGradual } from "../stack/rollout.ts";
import { synthesize } from "../synth.ts";
import { lostRights, Right, rightsOf } from "./rights.ts";

const RoleOf = z.object({ Role: z.object({ "Fn::GetAtt": z.tuple([z.string(), z.literal("Arn")]) }) });

/** The rights of functions, by the functions' files. */
export const RightsByFile = z.record(z.string(), z.array(Right));
export type RightsByFile = z.infer<typeof RightsByFile>;

/**
 * Returns the rights of the functions that a production deployment replaces step by step. It synthesizes the templates and reads the rights
 * from them. It does not build the functions' code (`emptyBundles`), because rights do not depend on it.
 */
export async function gradualRights(): Promise<RightsByFile> {
  const directory = mkdtempSync(join(tmpdir(), "canvassing-rights-"));
  const emptyBundles = async (files: readonly string[], outDir: string): Promise<void> =>
    files.forEach((file) => void mkdirSync(join(outDir, file), { recursive: true }));
  try {
    const { Resources } = (await synthesize(readConfig({ preset: "production" }), directory, emptyBundles)).service;
    const functions = Object.values(Resources).filter(({ Type }) => Type === "AWS::Lambda::Function");
    const rights = functions.flatMap(({ Properties, Metadata: { file } }) => {
      if (!isGradual(String(file))) return [];
      const [role] = RoleOf.parse(Properties).Role["Fn::GetAtt"];
      return [[String(file), rightsOf(Resources[role]?.Properties.Policies)] as const];
    });
    return Object.fromEntries(rights.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Returns a message for each right of `before` that the same function no longer has. A function that no longer exists needs no rights. */
export const removedRights = (before: RightsByFile, now: RightsByFile): string[] =>
  Object.entries(before).flatMap(([file, rights]) =>
    lostRights(rights, now[file] ?? rights).map(
      ({ action, on, keys = ["*"] }) => `${file} loses the right ${action} on ${on} for keys ${keys.join(", ")}`,
    ),
  );
