/** Gives the tests of the maps a company with four prospects, and the page that an admin has opened. */
import { dataOf } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { ascending, browserForAll, type Visit, visit } from "./visit.ts";

/** A small window, because fewer pixels are drawn faster. */
export const small = { width: 1100, height: 620 };

export const places = { Ann: [39.75, -104.95], Bob: [39.76, -104.96], Cid: [39.95, -104.75] } as const;

export function mapStage() {
  let team: Team;
  let admin: Visit;
  const ids: Record<string, number> = {};
  browserForAll(async (browser) => {
    team = await newTeam();
    for (const [name, [lat, lng]] of Object.entries(places)) {
      ids[name] = dataOf(await team.admin.POST("/api/prospects", { body: { name, lat, lng } }), 201).id;
    }
    ids.Dan = dataOf(await team.admin.POST("/api/prospects", { body: { name: "Dan" } }), 201).id;
    admin = await visit(browser, team.admin.email, "/map", small);
  });

  const idsOf = (...names: readonly string[]) => ascending(names.map((name) => ids[name] ?? 0));
  return { idsOf, team: (): Team => team, admin: (): Visit => admin };
}
