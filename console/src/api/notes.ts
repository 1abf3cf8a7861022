/** Adds notes to prospects. */
import { answer, api } from "./client.ts";

export const addNote = (id: number, body: string) =>
  answer(api.POST("/api/prospects/{id}/notes", { params: { path: { id } }, body: { body } }));

/** Returns the name under which drafts about a prospect are stored. The draft of a new note has the field `NOTE`. */
export const prospectRecord = (id: number): string => `prospect:${id}`;
export const NOTE = "note";

/** Returns the id of the prospect to which a draft of a note belongs. Returns undefined for other drafts. */
export function noteTarget({ record, field }: { record: string; field: string }): number | undefined {
  const [, id] = /^prospect:(\d+)$/.exec(record) ?? [];
  return field === NOTE && id !== undefined ? Number(id) : undefined;
}
