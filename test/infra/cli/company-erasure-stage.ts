/** Gives the tests of the erasure a scene with two tables, and suspends new companies in it. */
import { QUIET_MS } from "../../../infra/cli/company/erasure.ts";
import { suspend } from "../../../infra/cli/company/suspension.ts";
import { companyScene } from "./company-scene.ts";

/** What `remainsOf` returns if the service's table, the old table (`Canvassing-old`) and the bucket contain nothing of the company. */
export const nothing = { rows: {}, others: { "Canvassing-old": {} }, files: 0 };

export async function erasureStage() {
  const scene = await companyScene();
  const { context, time, company } = scene;
  /** Returns a name that no other company of the tests has. */
  const newName = (): string => `company-${names++}`;
  let names = 0;
  async function suspended() {
    const name = newName();
    const companyId = await company(name);
    await suspend({ table: context.rows.table, clock: context.clock }, companyId);
    time.now += QUIET_MS;
    return { name, companyId };
  }

  return { ...scene, newName, suspended };
}
