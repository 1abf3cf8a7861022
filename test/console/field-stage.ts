/** Gives the tests of the field mode a rep with eight assigned prospects (doors), whose phone has opened the field mode. */
import type { Browser, Page } from "playwright-core";
import { expect } from "vitest";
import type { NewProspect } from "../../docs/client/api.ts";
import { rectangle } from "../harness/rings.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam, type Team } from "../harness/team.ts";
import { type Visit, visit } from "./visit.ts";

export const screen = { width: 390, height: 780 };
/** The longitude and latitude of a building with two units. */
export const oak = [-104.93, 39.76] as const;
const address = { address2: null, city: "Denver", state: "CO", zip: "80207" };

export const newDoor = async (
  { admin }: Team,
  assignedToUserId: number | null,
  number: number,
  more: Partial<NewProspect> = {},
) => {
  const place = { lat: 39.75, lng: -104.9 - number / 10_000, address: { ...address, address1: `${number} Elm St` } };
  return dataOf(await admin.POST("/api/prospects", { body: { ...place, assignedToUserId, ...more } }), 201);
};

export async function newRep(browser: Browser): Promise<{ readonly team: Team; readonly rep: Visit }> {
  const team = await newTeam();
  const { user } = dataOf(await team.rep.GET("/api/me"));
  for (const number of [1, 3, 5, 7, 9, 4]) await newDoor(team, user.id, number, { name: `Owner of ${number}` });
  for (const unit of ["Unit 1", "Unit 2"]) {
    const place = { lat: oak[1], lng: oak[0], address: { ...address, address1: "1 Oak St", address2: unit } };
    const contact = { phoneNumber: "+1 303 555 0100", emailAddress: "oak@example.com" };
    dataOf(await team.admin.POST("/api/prospects", { body: { ...place, ...contact, assignedToUserId: user.id } }), 201);
  }
  // These statuses make the order of all statuses differ from the order of their ids.
  for (const [value, sortOrder] of [
    ["Renter", 1_000],
    ["Moved", 0],
  ] as const) {
    dataOf(await team.admin.POST("/api/statuses", { body: { value, color: "#123456", sortOrder } }), 201);
  }
  const polygon = rectangle(-104.91, 39.74, -104.89, 39.76);
  dataOf(await team.admin.POST("/api/territories", { body: { name: "Elm", polygon, assignedToUserId: user.id } }), 201);
  const rep = await visit(browser, team.rep.email, "/", screen);
  await upToDate(rep.page);
  return { team, rep };
}

export const upToDate = (page: Page) => page.getByRole("status").getByText("Up to date").waitFor();
export const doorOf = (page: Page) => page.getByRole("region", { name: "Door", exact: true });
export const titleOf = (page: Page) => doorOf(page).getByRole("heading", { level: 2 });

/** The statuses of the doors that have one, by the first line of the address, as an admin sees them. */
export async function statusesOf({ admin }: Team): Promise<Record<string, string>> {
  const { items } = dataOf(await admin.GET("/api/prospects", { params: { query: { pageSize: 100 } } }));
  return Object.fromEntries(
    items.flatMap(({ address: place, currentStatus }) =>
      place === null || currentStatus === null ? [] : [[place.address1, currentStatus.value]],
    ),
  );
}

export async function walkTo(page: Page, address1: string): Promise<void> {
  const title = titleOf(page);
  for (let i = 0; i < 10 && (await title.textContent()) !== address1; i++) {
    await page.getByRole("button", { name: "Next door", exact: true }).click();
  }
  expect(await title.textContent()).toBe(address1);
}
