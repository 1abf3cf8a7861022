/** Creates users of each role in two companies, and records of these companies, for the role matrix. */
import * as z from "zod/mini";
import { bodyOf, Identified } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { ask, type Company, marker, newStage, type Stage, userOf } from "./matrix-stage.ts";
import { type CallerName, callers } from "./matrix-table.ts";

export interface Cast {
  readonly emails: Readonly<Record<CallerName, string | undefined>>;
  /** Returns the records that the requests of this caller may change. All callers who may change nothing share the records `kept`. */
  readonly stageOf: (caller: CallerName) => Stage;
  /** Records that no request changes. `kept` belongs to the first company, and `foreign` to the second. */
  readonly kept: Stage;
  readonly foreign: Stage;
  /** The ids of a disabled user and of a deactivated status of the first company. New records must not refer to them. */
  readonly inactive: { readonly user: number; readonly status: number };
}

export async function newCast(): Promise<Cast> {
  const team = await newTeam();
  const [owner, otherOwner] = [team.owner.email, team.otherOwner.email];
  await Promise.all([markTeam("one", [owner, team.rep2.email]), markTeam("two", [otherOwner, team.otherRep.email])]);
  const [plainId, foreignId] = [await userIdOf(team.rep.email), await userIdOf(team.otherRep.email)];
  const disabled = userOf(marker("one", "-"), { role: "owner" });
  const [somebodyElse, user, status] = [
    await marker("one", "other", "/api/users").made(owner, "/api/users", userOf(marker("one", "other", "/api/users"))),
    await marker("one", "-").made(owner, "/api/users", disabled),
    await marker("one", "-").made(owner, "/api/statuses", { value: marker("one", "-").text() }),
  ];
  bodyOf(await ask(owner, "DELETE", `/api/users/${user}`), 200, Identified);
  bodyOf(await ask(owner, "DELETE", `/api/statuses/${status}`), 200, Identified);

  const one = (): Promise<Stage> => newStage("one", owner, { mine: plainId, other: somebodyElse });
  const [kept, foreign] = [await one(), await newStage("two", otherOwner, { mine: foreignId, other: foreignId })];
  const working = ["owner", "admin", "plain", "viewer", "manager"];
  const stages = new Map<CallerName, Stage>();
  // The records are created one after the other. Concurrent creations would start several environments of each function, which costs
  // processor time.
  for (const caller of callers) stages.set(caller, working.includes(caller) ? await one() : kept);
  const [admin, plain, viewer, manager] = [team.admin, team.rep, team.viewer, team.importer].map(({ email }) => email);
  return {
    emails: { owner, admin, plain, viewer, manager, stranger: otherOwner, disabled: disabled.email, nobody: undefined },
    stageOf: (caller) => stages.get(caller) ?? kept,
    kept,
    foreign,
    inactive: { user, status },
  };
}

const Me = z.object({ user: Identified, company: Identified });
const meOf = async (email: string) => bodyOf(await ask(email, "GET", "/api/me"), 200, Me);
const userIdOf = async (email: string): Promise<number> => (await meOf(email)).user.id;

/** Registers marks of the company and its users. Their names are left out, because both companies have users with the same names. */
async function markTeam(company: Company, emails: readonly string[]): Promise<void> {
  const everybody = marker(company, "-");
  for (const email of emails) {
    const me = await meOf(email);
    everybody.known(me.user.id);
    everybody.known(me.company.id);
    everybody.known(email);
  }
}
