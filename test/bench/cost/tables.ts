/** The tables of docs/cost.md. */
import { operations as requests } from "../../load/arrivals.ts";
import { sizeOf } from "../budget.ts";
import { table } from "../written-page.ts";
import type { Measured, Operation } from "./measured.ts";
import { type Cost, costLines, costOf } from "./model.ts";
import { PRICES_DATE, PRICES_REGION } from "./prices.ts";
import { deploymentOf, type Scenario } from "./working-day.ts";

export const REPS = [1, 50, 1_000] as const;
const PROSPECTS = [10_000, 100_000, 1_000_000] as const;

const SEVERAL: readonly Scenario[] = [
  { reps: 1_000, companies: 200, prospects: 100_000 },
  { reps: 1_000, companies: 20, prospects: 1_000_000 },
];

const presetOf = ({ reps }: Scenario) => (reps > 50 ? ("production" as const) : ("small" as const));

/** The scenario whose costs are shown with both presets. */
const SMALL_PRODUCTION: Scenario = { reps: 50, companies: 1, prospects: 100_000 };

/** Returns the costs of the scenarios whose number of reps is in `chosen`. Computing the costs of a thousand reps takes seconds. */
export function costsOf(measured: Measured, chosen: readonly number[] = REPS): Cost[] {
  const grid = REPS.flatMap((reps) => PROSPECTS.map((prospects) => ({ reps, companies: 1, prospects })));
  const scenarios = [...grid, ...SEVERAL].filter(({ reps }) => chosen.includes(reps));
  return [
    ...scenarios.map((scenario) => costOf(scenario, deploymentOf(presetOf(scenario)), measured)),
    costOf(SMALL_PRODUCTION, deploymentOf("production"), measured),
  ];
}

const dollars = (amount: number): string => (amount < 10 ? amount.toFixed(2) : amount.toFixed(0));

export const costTables = (measured: Measured, costs: readonly Cost[]): string =>
  [
    `Operations measured on ${measured.date}, prices of ${PRICES_REGION} on ${PRICES_DATE}.`,
    table(
      ["reps", "companies", "prospects of each", "preset", ...costLines, "total", "with the preset's defaults"],
      costs.map(costRow),
    ),
    `The measured operations. A map view shows ${measured.pinsInView} pins:`,
    operationTable(measured),
  ].join("\n\n");

const costRow = ({ scenario: { reps, companies, prospects }, preset, lines, total, withDefaults }: Cost): string[] => [
  String(reps),
  String(companies),
  sizeOf(prospects),
  preset,
  ...costLines.map((line) => dollars(lines[line])),
  `**${dollars(total)}**`,
  dollars(withDefaults),
];

const names: Readonly<Record<Operation, string>> = {
  pins: "map views",
  patch: "changes of a status",
  detail: "reads of one prospect",
  list: "lists",
  search: "search",
  create: "creates",
  authorize: "authorizer",
};

const operationTable = ({ operations }: Measured): string =>
  table(
    ["operation", "read units", "write units", "rounds", "bytes sent", "access log bytes", "CPU ms"],
    [...requests, "authorize" as const].map((name) => {
      const { readUnits, writeUnits, rounds, sentBytes, accessLogBytes, cpuMs } = operations[name];
      const figures = [readUnits, writeUnits, rounds, sentBytes, accessLogBytes, cpuMs];
      return [names[name], ...figures.map((value) => String(Number(value.toFixed(1))))];
    }),
  );
