/** Reads the names, the note texts and the shares of statuses of the demo prospects. */
import people from "./people.json" with { type: "json" };

export const { firstNames, lastNames, noteTexts } = people;

/** The share of prospects with each status, in per cent. The remaining prospects have no status. */
export const statusShares: Readonly<Record<string, number>> = people.statusShares;
