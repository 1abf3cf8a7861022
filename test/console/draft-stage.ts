/** Gives the tests of drafts a company with two prospects, and a page on which an admin has opened the list of prospects. */
import type { Page } from "playwright-core";
import { dataOf } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { browserForAll, type Visit, visit } from "./visit.ts";

export function draftStage() {
  let team: Team;
  let admin: Visit;
  let ids: readonly [ann: number, bob: number];
  browserForAll(async (browser) => {
    team = await newTeam();
    const create = async (name: string) => dataOf(await team.admin.POST("/api/prospects", { body: { name } }), 201).id;
    ids = [await create("Ann"), await create("Bob")];
    admin = await visit(browser, team.admin.email, "/prospects");
  });
  const notesOf = async (id: number) =>
    dataOf(await team.admin.GET("/api/prospects/{id}", { params: { path: { id } } })).notes.map(({ body }) => body);
  return { notesOf, team: () => team, admin: () => admin, ids: () => ids };
}

export const panel = (page: Page, name?: string) =>
  page.getByRole("complementary", { name: "Prospect" }).getByRole("heading", { name: name ?? /./, level: 2 });
export const noteOf = (page: Page) => page.getByLabel("New note");
export const add = (page: Page) => page.getByRole("button", { name: "Add note" }).click();

export async function open(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name, exact: true }).click();
  await panel(page, name).waitFor();
}
