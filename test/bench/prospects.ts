/**
 * Generates the synthetic prospects of the benches. Their values depend only on their number and company, so every run has the same data.
 */
import { iso } from "#shared/clock.ts";
import type { NewProspect } from "#shared/prospects/input.ts";
import type { StoredNote, StoredProspect } from "#shared/prospects/stored.ts";
import { firstNames, lastNames, noteTexts } from "../../infra/local/demo/people.ts";
import { randomSequence } from "../../infra/local/demo/random.ts";
import {
  pick,
  type SyntheticCompany,
  syntheticNote,
  syntheticProspect,
} from "../../infra/local/demo/synthetic-prospect.ts";
import { type City, cityAt, houseIn } from "./places.ts";

export interface BenchCompany extends SyntheticCompany {
  /** The id of the first prospect. The ids of the company's prospects are consecutive. */
  readonly firstId: number;
  readonly count: number;
}

export interface Made {
  readonly prospect: StoredProspect;
  readonly note: StoredNote | undefined;
}

/** The period in which the prospects are created. The benches simulate the day after it. */
const FIRST_CREATED = Date.UTC(2023, 4, 1);
const LAST_CREATED = Date.UTC(2026, 4, 1);
/** The import id of each prospect. Prospects with an import id cause no webhook events, so a bench that measures events removes it. */
const IMPORT_ID = "bench";
const RARE_ONE_IN = 5_000;
export const RARE_NAME = "Zdanowicz";

/** The first ids of addresses, status changes and notes. They have as many digits as in production, so that rows have realistic sizes. */
const bases = { address: 10_000_000, change: 20_000_000, note: 30_000_000 } as const;

/**
 * Returns the prospect with the number `at`, counted from 0, the oldest first. The seed of its random values is its distance from the
 * newest prospect, so the newest prospects of small and large companies have the same random values.
 */
export function makeProspect(company: BenchCompany, at: number): Made {
  const random = randomSequence(company.count - at);
  const createdAt = iso(FIRST_CREATED + Math.floor((at / company.count) * (LAST_CREATED - FIRST_CREATED)));
  const first = pick(firstNames, random);
  const last = random() < 1 / RARE_ONE_IN ? RARE_NAME : pick(lastNames, random);
  const city = cityAt(random());
  const house = random() < 0.97 ? houseIn(city, random) : { lat: null, lng: null };
  const status = random() < 0.9 ? pick(company.statuses, random) : undefined;
  const assignedToUserId = random() < 0.8 ? pick(company.repIds, random) : null;
  const prospect = syntheticProspect(company, {
    id: company.firstId + at,
    name: `${first} ${last}`,
    phoneNumber: phone(random),
    secondaryPhoneNumber: random() < 0.1 ? phone(random) : null,
    emailAddress: random() < 0.6 ? `${first}.${last}${at % 1_000}@example.com`.toLowerCase() : null,
    ...house,
    address: { id: bases.address + at, ...addressIn(city, random) },
    status,
    changeId: bases.change + at,
    assignedToUserId,
    tagIds: company.tagIds.filter(() => random() < 0.12),
    source: "import",
    createdAt,
    importId: IMPORT_ID,
  });
  const body = (): string => `${pick(remarks, random)} ${pick(remarks, random)}`;
  const createdBy = company.ownerId;
  const note =
    random() < 0.35 ? syntheticNote(prospect, { id: bases.note + at, body: body(), createdBy, createdAt }) : undefined;
  return { prospect, note };
}

/** Returns the input with which a rep creates a prospect in front of a house: with a location, but without an address. */
export function newProspectAt(company: BenchCompany, at: number): NewProspect {
  const { name, phoneNumber, emailAddress, lat, lng } = makeProspect(company, at % company.count).prospect;
  return { name, phoneNumber, emailAddress, lat, lng };
}

function addressIn({ name, state, zip }: City, random: () => number) {
  const address1 = `${100 + Math.floor(random() * 9_900)} ${pick(streets, random)}`;
  const address2 = random() < 0.1 ? `Apt ${1 + Math.floor(random() * 90)}` : null;
  const code = `${zip}${String(Math.floor(random() * 60)).padStart(2, "0")}`;
  const lines = [address1, address2, name, `${state} ${code}`].filter((line) => line !== null);
  return { address1, address2, city: name, state, zip: code, formattedAddress: lines.join(", ") };
}

const phone = (random: () => number): string =>
  `(${300 + Math.floor(random() * 600)}) ${200 + Math.floor(random() * 700)}-${String(Math.floor(random() * 10_000)).padStart(4, "0")}`;

const streets = [
  ...["Colfax Ave", "Pearl St", "Larimer St", "Camelback Rd", "Thomas Rd", "Elm St", "Main St", "Oak Dr"],
  ...["Cedar Ln", "Sunset Blvd", "Lakeview Ct", "Mission Rd", "2nd Ave", "Ridge Way", "Prairie Ave", "Harwood St"],
] as const;

const remarks = [
  ...noteTexts,
  "Rents; the landlord lives two streets down.",
  "Has solar panels already, asks about a battery.",
  "Gutters are loose on the north side.",
  "Speaks Spanish, call the daughter first.",
] as const;
