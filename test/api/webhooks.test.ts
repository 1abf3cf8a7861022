/** Webhooks and their registrations over HTTP: secrets, rights, faults and limits. */
import { afterEach, describe, expect, test } from "vitest";
import type { NewRegistration } from "../../docs/client/api.ts";
import { at } from "./client.ts";
import { dataOf, present, problemOf, statusOf, uniqueName } from "./shapes.ts";
import { newTeam } from "./team.ts";

const as = await newTeam();

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

describe("webhooks", () => {
  test("the secret is shown once, then masked", async () => {
    const answer = await as.admin.POST("/api/webhooks", { body: { name: "CRM", url: "https://example.com/hook" } });
    const made = dataOf(answer, 201);
    const path = `/api/webhooks/${made.id}`;
    cleanUps.push(() => as.admin.DELETE("/api/webhooks/{id}", at(made.id)));
    expect(made.secretKey).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    expect(answer.response.headers.get("location")).toBe(path);
    const masked = `••••${made.secretKey.slice(-4)}`;
    expect(dataOf(await as.admin.GET("/api/webhooks/{id}", at(made.id)))).toEqual({ ...made, secretKey: masked });
    const list = dataOf(await as.owner.GET("/api/webhooks"));
    expect(list[0]).toEqual({ ...made, secretKey: masked });
    expect(JSON.stringify(list)).not.toContain(made.secretKey);
  });

  test("a given secret is taken as it is", async () => {
    const body = { name: "CRM", url: "https://example.com/", secretKey: "shhh" };
    const made = dataOf(await as.admin.POST("/api/webhooks", { body }), 201);
    cleanUps.push(() => as.admin.DELETE("/api/webhooks/{id}", at(made.id)));
    expect(made.secretKey).toBe("shhh");
  });

  test("sales users get 403 before anything is looked at; another company gets 404", async () => {
    const made = dataOf(
      await as.admin.POST("/api/webhooks", { body: { name: "x", url: "https://example.com/" } }),
      201,
    );
    cleanUps.push(() => as.admin.DELETE("/api/webhooks/{id}", at(made.id)));
    for (const id of [made.id, 1, "nonsense"]) {
      for (const method of ["GET", "DELETE"])
        problemOf(await as.viewer(method, `/api/webhooks/${id}`), 403, "permission_denied");
    }
    problemOf(await as.rep("POST", "/api/webhooks", { junk: 1 }), 403, "permission_denied");
    problemOf(await as.otherOwner.GET("/api/webhooks/{id}", at(made.id)), 404, "not_found");
    problemOf(await as.otherOwner.DELETE("/api/webhooks/{id}", at(made.id)), 404, "not_found");
    problemOf(
      await as.otherOwner.POST("/api/webhooks/{id}/registrations", {
        ...at(made.id),
        body: { event: "prospect.created" },
      }),
      404,
      "not_found",
    );
    problemOf(await as.otherOwner.GET("/api/webhooks/{id}/registrations", at(made.id)), 404, "not_found");
  });

  test.each([
    ["/name", { url: "https://example.com/" }],
    ["/name", { name: "", url: "https://example.com/" }],
    ["/url", { name: "x" }],
    ["/url", { name: "x", url: "not a url" }],
    ["/url", { name: "x", url: "ftp://example.com/" }],
    ["/url", { name: "x", url: "https://user:pw@example.com/" }],
    ["/url", { name: "x", url: "http://169.254.169.254/" }],
    ["/registrations/0/event", { name: "x", url: "https://example.com/", registrations: [{ event: "" }] }],
    [
      "/registrations/0/delayMinutes",
      { name: "x", url: "https://example.com/", registrations: [{ event: "a", delayMinutes: -1 }] },
    ],
    [
      "/registrations/0/filter",
      { name: "x", url: "https://example.com/", registrations: [{ event: "a", filter: "b" }] },
    ],
  ])("a fault at %s is told", async (pointer, body) => {
    const faults = problemOf(await as.admin("POST", "/api/webhooks", body), 400, "validation_failed");
    expect(faults.map((fault) => fault.pointer)).toContain(pointer);
  });

  test("registrations are added, listed and deleted", async () => {
    const registrations = [{ event: "prospect.created" }];
    const body = { name: uniqueName(), url: "https://example.com/", registrations };
    const webhook = dataOf(await as.admin.POST("/api/webhooks", { body }), 201);
    cleanUps.push(() => as.admin.DELETE("/api/webhooks/{id}", at(webhook.id)));
    const path = `/api/webhooks/${webhook.id}/registrations`;
    const registration: NewRegistration = {
      event: "prospect.deleted",
      filter: { "prospect.name": "x" },
      delayMinutes: 5,
      triggerMode: "manual",
      manualTriggerButtonText: "Go",
    };
    const answer = await as.admin.POST("/api/webhooks/{id}/registrations", { ...at(webhook.id), body: registration });
    const added = dataOf(answer, 201);
    expect(added).toEqual({ id: added.id, ...registration });
    expect(answer.response.headers.get("location")).toBe(`${path}/${added.id}`);
    const list = dataOf(await as.admin.GET("/api/webhooks/{id}/registrations", at(webhook.id)));
    expect(list.map(({ id }) => id).toSorted()).toEqual(
      [...webhook.registrations, added].map(({ id }) => id).toSorted(),
    );
    expect(
      dataOf(
        await as.admin.DELETE("/api/webhooks/{id}/registrations/{registrationId}", {
          params: { path: { id: webhook.id, registrationId: added.id } },
        }),
      ),
    ).toEqual({ id: added.id });
    problemOf(
      await as.admin.DELETE("/api/webhooks/{id}/registrations/{registrationId}", {
        params: { path: { id: webhook.id, registrationId: added.id } },
      }),
      404,
      "not_found",
    );
    expect(dataOf(await as.admin.GET("/api/webhooks/{id}", at(webhook.id))).registrations).toEqual(
      webhook.registrations,
    );
  });

  test("limits hold when sixty are made at once: 40 webhooks, 50 registrations", async () => {
    const before = dataOf(await as.otherOwner.GET("/api/webhooks")).length;
    const answers = await Promise.all(
      Array.from({ length: 60 }, () =>
        as.otherOwner.POST("/api/webhooks", { body: { name: "x", url: "https://example.com/" } }),
      ),
    );
    const made = answers.flatMap(({ data }) => (data === undefined ? [] : [data.id]));
    const first = present(made[0]);
    expect(made).toHaveLength(40 - before);
    for (const refused of answers.filter(({ data }) => data === undefined)) problemOf(refused, 409, "conflict");

    const registered = await Promise.all(
      Array.from({ length: 60 }, () =>
        as.otherOwner.POST("/api/webhooks/{id}/registrations", { ...at(first), body: { event: "prospect.created" } }),
      ),
    );
    expect(registered.filter((answer) => statusOf(answer) === 201)).toHaveLength(50);
    expect(registered.filter((answer) => statusOf(answer) === 409)).toHaveLength(10);

    const deleted = await Promise.all(made.map((id) => as.otherOwner.DELETE("/api/webhooks/{id}", at(id))));
    expect(deleted.every((answer) => statusOf(answer) === 200)).toBe(true);
    problemOf(await as.otherOwner.GET("/api/webhooks/{id}", at(first)), 404, "not_found");
    problemOf(await as.otherOwner.GET("/api/webhooks/{id}/registrations", at(first)), 404, "not_found");
  });
});
