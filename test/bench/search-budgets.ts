/** Measures the processor time of a warm function for searches with the worst words (budget 17 of docs/benchmarks.md). */
import { prospectDelta } from "#shared/company-index/write/entries.ts";
import { ProspectFilter } from "#shared/prospects/filter.ts";
import { findFiltered } from "#shared/prospects/find.ts";
import { indexRow } from "#shared/prospects/indexed.ts";
import { type Budget, budgetsOf, sizeOf } from "./budget.ts";
import { medianOf } from "./clock.ts";
import { makeProspect } from "./prospects.ts";
import type { Stage } from "./stage.ts";

const RUNS = 3;
/** Number of searches before the measurement. After them, the word indexes of all segments exist. */
const WARMING = 8;
/**
 * Prospects that are changed before the second measurement. Nearly every segment then has an outdated row, so each search tests all rows
 * for each word.
 */
const CHANGED = 60;

const remark = "Rents; the landlord lives two streets down. Has solar panels already, asks about a battery.";
const parts = (text: string, length: number): string[] =>
  Array.from(text, (_, i) => text.slice(i, i + length)).filter((part) => part.length === length && !part.includes(" "));
/** Returns a search text with each of the words once, cut off at the maximum length. */
const queryOf = (words: readonly string[]): string => [...new Set(words)].join(" ").slice(0, 200);

const queries = {
  "a hundred words of one digit": Array.from({ length: 100 }, (_, i) => i % 10).join(" "),
  "six words of one digit": "0 1 2 3 4 5",
  "words of one letter, digit or sign": queryOf([..."earotinslcd0123456789()-.,@mxphubg"]),
  "all pairs of a digit and a sign": queryOf(
    Array.from("0123456789").flatMap((digit) => [`${digit}@`, `${digit})`, `(${digit}`, `${digit}-`, `-${digit}`]),
  ),
  "all pairs of letters of a note": queryOf(parts(remark, 2)),
  "all triples of letters of a note": queryOf(parts(remark, 3)),
};

export async function searchBudgets({ context, caller, company }: Stage): Promise<Budget[]> {
  const [, repId = 0] = company.repIds;
  const rep = { ...caller, userId: repId, role: "sales" as const };
  const find = (search: string, as = caller) => findFiltered(context, as, ProspectFilter.parse({ search }));
  for (let i = 0; i < WARMING; i++) await find("denver");
  const line = budgetsOf(sizeOf(company.count));
  const budgets: Budget[] = [];
  const measure = async (state: string): Promise<void> => {
    for (const [name, query] of Object.entries(queries)) {
      for (const [role, as] of [["admin", caller] as const, ["rep", rep] as const]) {
        const { cpuMs } = await medianOf(RUNS, () => find(query, as));
        const text = `search for ${name}${state}, ${role}, processor time, ms (aim 1000)`;
        budgets.push(line(17, text, null, cpuMs));
      }
    }
  };
  await measure("");
  for (let i = 0; i < CHANGED; i++) {
    const { prospect } = makeProspect(company, Math.floor((i * company.count) / CHANGED));
    await context.table.transact(prospectDelta(company.id, indexRow({ ...prospect, version: 2 }), null));
  }
  await measure(", with outdated rows");
  return budgets;
}
