/** Reads the search index for the stages of one page of the feed of changes. */
import type { Criteria } from "#shared/company-index/criteria.ts";
import type { Found } from "#shared/company-index/read/company-index.ts";
import { type LiveNotes, liveNotes, versionsOf } from "#shared/company-index/search/live-notes.ts";
import type { NewestVersions } from "#shared/company-index/versions.ts";
import { criteriaOf } from "#shared/prospects/filter.ts";
import { findProspects } from "#shared/prospects/find.ts";
import type { Dictionary } from "#shared/reference/dictionary.ts";
import { type Agendas, allAgendas } from "#shared/sync/changes/agendas.ts";
import type { Making } from "#shared/sync/changes/items.ts";
import type { ChangeType } from "#shared/sync/changes/schema.ts";

export type Where = Pick<Criteria, "statusIds" | "tagIds" | "assigneeIds">;

/** The search index is read at most once for each different `where`. */
export class StageReads {
  readonly making: Making;
  readonly #types: readonly ChangeType[];
  readonly #found = new Map<string, Promise<Found<Dictionary>>>();
  #visible: NewestVersions | undefined;
  #agendas: Promise<Agendas> | undefined;

  constructor(making: Making, types: readonly ChangeType[]) {
    this.making = making;
    this.#types = types;
  }

  found(where: Where = {}): Promise<Found<Dictionary>> {
    const name = JSON.stringify(Object.entries(where).map(([field, ids]) => [field, ...(ids ?? [])]));
    const known = this.#found.get(name);
    if (known !== undefined) return known;
    const { context, caller } = this.making;
    const notesOf = this.#types.includes("notes") ? liveNotes : undefined;
    const criteria = (names: Dictionary): Criteria => narrowed(criteriaOf({}, caller, names), where);
    const found = findProspects(context, caller.companyId, criteria, { notesOf });
    this.#found.set(name, found);
    return found;
  }

  /** The types of the page must include notes. */
  async notes(where?: Where): Promise<LiveNotes> {
    const { notes } = await this.found(where);
    if (notes === undefined) throw new Error("the page has no notes");
    return notes;
  }

  /** Call it only for a user who may see all prospects. */
  async agendas(): Promise<Agendas> {
    const { names, head } = await this.found();
    const { context, caller } = this.making;
    this.#agendas ??= allAgendas(context.table, caller.companyId, [...names.users.keys()], head.version);
    return this.#agendas;
  }

  async visible(): Promise<NewestVersions> {
    const { matches } = await this.found();
    this.#visible ??= versionsOf(matches);
    return this.#visible;
  }
}

/** If both limit the assignees, only those that both allow remain, so that a user sees only prospects that the user may see. */
function narrowed(criteria: Criteria, { assigneeIds: wanted, ...where }: Where): Criteria {
  if (wanted === undefined) return { ...criteria, ...where };
  const { assigneeIds: visible } = criteria;
  const both = visible === undefined ? wanted : new Set([...visible].filter((id) => wanted.has(id)));
  return { ...criteria, ...where, assigneeIds: both };
}
