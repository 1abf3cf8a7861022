/** Tests that every route refuses unknown query parameters, in the documented order of errors, and ignores names that begin with `_`. */
import { expect, test } from "vitest";
import { routes } from "../../infra/routes/routes.ts";
import { send } from "../harness/client.ts";
import { problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();
const paths = routes
  .filter(({ path }) => path.startsWith("/api/") && !path.startsWith("/api/session/"))
  .map(({ method, path }) => [method, path.replaceAll(/\{\w+\}/g, "9000000000000000")] as const);

test.each(paths)(
  "%s %s refuses an unknown parameter before it looks at the body and the record",
  async (method, path) => {
    const answer = await as.owner(method, `${path}?statuss=New&_=1`);
    const faults = problemOf(answer, 400, "validation_failed");
    expect(faults).toMatchObject([{ parameter: "statuss", code: "unknown_parameter" }]);
    problemOf(await send(method, `${path}?statuss=New`), 401, "unauthenticated");
    const ignored = await as.owner(method, `${path}?_=1&_b=2`);
    expect(ignored.text).not.toContain("unknown_parameter");
  },
);

test.each([
  ["status[]", "status"],
  ["Status", "status"],
  ["tag", "tagId"],
  ["pagesize", "pageSize"],
  ["territory", "territoryId"],
  ["sourceid", "sourceId"],
])("?%s= on a list, an export and the maps names %s", async (name, nearest) => {
  for (const path of ["", "/pins", "/export", "/clusters", "/tiles/0/0/0.mvt"].map((end) => `/api/prospects${end}`)) {
    const answer = await as.owner("GET", `${path}?${encodeURIComponent(name)}=New`);
    expect(problemOf(answer, 400, "validation_failed"), path).toMatchObject([
      { parameter: name, message: `is not known. Did you mean ${nearest}?` },
    ]);
  }
});

test("a missing right is reported before an unknown parameter, and an unknown path gets 404", async () => {
  problemOf(await as.rep("GET", "/api/webhooks?x=1"), 403, "permission_denied");
  problemOf(await as.owner("GET", "/api/prospectss?x=1"), 404, "not_found");
  problemOf(await as.owner("GET", "/api/prospects/9000000000000000"), 404, "not_found");
});

test("at most ten names of at most 64 characters are shown", async () => {
  const names = Array.from({ length: 12 }, (_, i) => `${i}${"🏠".repeat(70)}`);
  const query = names.map((name) => `${encodeURIComponent(name)}=1`).join("&");
  const faults = problemOf(await as.owner("GET", `/api/prospects?${query}`), 400, "validation_failed");
  expect(faults.map(({ parameter }) => parameter)).toEqual(
    names.slice(0, 10).map((name) => [...name].slice(0, 64).join("")),
  );
  expect(problemOf(await as.owner("GET", "/api/me?=1"), 400, "validation_failed")).toMatchObject([
    { parameter: "", message: "is not known" },
  ]);
});

test("maps and exports ignore pages, and sales users may send any filter for representatives", async () => {
  for (const path of [
    ...["prospects/pins", "prospects/export", "prospects/clusters", "prospects/tiles/0/0/0.mvt"],
    "territories/tiles/0/0/0.mvt",
  ]) {
    const needed = path === "prospects/clusters" ? "&bbox=0,0,1,1&zoom=1" : "";
    const answer = await as.owner("GET", `/api/${path}?page=-1&pageSize=x&page=2${needed}`);
    expect([200, 204], answer.text).toContain(answer.status);
  }
  for (const path of ["", "/pins", "/export"]) {
    expect((await as.rep("GET", `/api/prospects${path}?assignedToUserId=x&rep=,`)).status).toBe(200);
  }
});
