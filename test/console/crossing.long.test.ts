/** Tests in a real browser that the map shows a territory whose edges cross each other. */
import { expect, test } from "vitest";
import { dataOf } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { browserForAll, clickUntil, drawn, jumpTo, soon, type Visit, visit } from "./visit.ts";

let team: Team;
let admin: Visit;
let territory: number;
/** A polygon in the form of a bow-tie. The areas of its western and eastern half have different signs, and their sum is zero. */
const polygon = [
  [-104.96, 39.74],
  [-104.92, 39.78],
  [-104.92, 39.74],
  [-104.96, 39.78],
];
browserForAll(async (browser) => {
  team = await newTeam();
  territory = dataOf(await team.admin.POST("/api/territories", { body: { name: "Bow-tie", polygon } }), 201).id;
  for (const [name, lng] of [
    ["West", -104.955],
    ["East", -104.925],
  ] as const) {
    dataOf(await team.admin.POST("/api/prospects", { body: { name, lat: 39.76, lng } }), 201);
  }
  admin = await visit(browser, team.admin.email, "/territories");
});

test("a territory whose edges cross each other is drawn, and a click into each part opens it", async () => {
  const { page } = admin;
  await page.locator('[data-ready="true"] canvas').waitFor();
  const areas = async () => (await drawn(page)).filter(({ layer, id }) => layer === "territories" && id === territory);
  const panel = page.getByRole("complementary", { name: "Territory Bow-tie" });
  for (const lng of [-104.953, -104.927]) {
    // At this zoom, the whole bow-tie is in one tile, so the sum of the two areas in this tile is zero. The map must show the territory
    // nevertheless.
    await jumpTo(page, [-104.94, 39.76], 10);
    await expect.poll(async () => (await areas()).length, soon).toBe(1);
    await clickUntil(page, [39.76, lng], panel);
    await panel.getByText("2 prospects inside.").waitFor();
    await panel.getByRole("button", { name: "Close the territory" }).click();
    await panel.waitFor({ state: "detached" });
  }
});
