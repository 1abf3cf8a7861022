/** Undoes a change of a prospect, unless somebody has changed the same member again. */
import type { ProspectDetail, ProspectPatch } from "canvassing-client/api";
import { answer, api } from "../api/client.ts";
import { randomUuid } from "../api/once.ts";

/** The member of a prospect that a change has set. */
export type Shown = keyof Pick<ProspectDetail, "currentStatus" | "assignedTo">;

/**
 * A version that is lower than that of any changed prospect, so the first operation is a conflict. Its answer contains the present prospect
 * with its version, which the answers to PATCH and GET lack.
 */
const OLDEST = 1;

/** Throws an error if the member is no longer `changedTo`. Other changes of the prospect do not matter. */
export async function undoChange(
  id: number,
  fields: ProspectPatch,
  shown: Shown,
  changedTo: number | null,
): Promise<void> {
  for (let baseVersion = OLDEST; ; ) {
    const operation = { opId: randomUuid(), type: "prospect.update" as const, id, fields, baseVersion };
    const body = { deviceId: "console", operations: [operation] };
    const [result] = (await answer(api.POST("/api/sync/operations", { body }))).results;
    if (result?.outcome === "applied") return;
    if (result?.outcome !== "conflict" || result.version === null) {
      throw new Error(result?.problem?.detail ?? "The service is busy. Try again in a moment.");
    }
    if (idIn(result.record?.[shown]) !== changedTo) {
      throw new Error("Somebody has changed this again, so it was not undone.");
    }
    baseVersion = result.version;
  }
}

const idIn = (record: unknown): unknown =>
  typeof record === "object" && record !== null && "id" in record ? record.id : null;
