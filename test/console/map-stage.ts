/** Gives tests of maps and drafts a company with four prospects, and the page that an admin has opened. */
import type { Page } from "playwright-core";
import { at } from "../harness/client.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { ascending, browserForAll, type Visit, visit } from "./visit.ts";

/** A small window, because fewer pixels are drawn faster. */
export const small = { width: 1100, height: 620 };

export const places = { Ann: [39.75, -104.95], Bob: [39.76, -104.96], Cid: [39.95, -104.75] } as const;

export function mapStage(path = "/map") {
  let team: Team;
  let admin: Visit;
  const ids: Record<string, number> = {};
  browserForAll(async (browser) => {
    team = await newTeam();
    for (const [name, [lat, lng]] of Object.entries(places)) {
      ids[name] = dataOf(await team.admin.POST("/api/prospects", { body: { name, lat, lng } }), 201).id;
    }
    ids.Dan = dataOf(await team.admin.POST("/api/prospects", { body: { name: "Dan" } }), 201).id;
    admin = await visit(browser, team.admin.email, path, small);
  });

  const idsOf = (...names: readonly string[]) => ascending(names.map((name) => ids[name] ?? 0));
  const detailOf = async (id: number) => dataOf(await team.admin.GET("/api/prospects/{id}", at(id)));
  const notesOf = async (id: number) => (await detailOf(id)).notes.map(({ body }) => body);
  return { idsOf, detailOf, notesOf, team: (): Team => team, admin: (): Visit => admin };
}

export const panel = (page: Page, name?: string) =>
  page.getByRole("complementary", { name: "Prospect" }).getByRole("heading", { name: name ?? /./, level: 2 });
export const noteOf = (page: Page) => page.getByLabel("New note");
export const add = (page: Page) => page.getByRole("button", { name: "Add note" }).click();

export async function open(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name, exact: true }).click();
  await panel(page, name).waitFor();
}
