/** Tests the endpoints of webhooks and registrations: secrets, rights, validation errors and limits. */
import { describe, expect, onTestFinished, test } from "vitest";
import * as limits from "#shared/limits.ts";
import { at } from "../harness/client.ts";
import { dataOf, present, problemOf, statusOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { newWebhook } from "./subscribed.ts";

const as = await newTeam();

describe("webhooks", () => {
  test("the secret is shown once, then masked", async () => {
    const answer = await as.admin.POST("/api/webhooks", { body: { name: "CRM", url: "https://example.com/hook" } });
    const { standardWebhooksSecret, ...made } = dataOf(answer, 201);
    expect(standardWebhooksSecret).toBe(`whsec_${Buffer.from(made.secretKey, "utf8").toString("base64")}`);
    const path = `/api/webhooks/${made.id}`;
    onTestFinished(async () => void (await as.admin.DELETE("/api/webhooks/{id}", at(made.id))));
    expect(made.secretKey).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    expect(answer.response.headers.get("location")).toBe(path);
    const masked = `••••${made.secretKey.slice(-4)}`;
    expect(dataOf(await as.admin.GET("/api/webhooks/{id}", at(made.id)))).toEqual({ ...made, secretKey: masked });
    const list = dataOf(await as.owner.GET("/api/webhooks"));
    expect(list[0]).toEqual({ ...made, secretKey: masked });
    expect(JSON.stringify(list)).not.toContain(made.secretKey);
  });

  test("sales users get 403 whether or not the webhook exists, and another company gets 404", async () => {
    const made = await newWebhook(as.admin);
    for (const id of [made.id, 1, "nonsense"]) {
      for (const method of ["GET", "DELETE"])
        problemOf(await as.viewer(method, `/api/webhooks/${id}`), 403, "permission_denied");
    }
    problemOf(await as.rep("POST", "/api/webhooks", { junk: 1 }), 403, "permission_denied");
    problemOf(await as.otherOwner.GET("/api/webhooks/{id}", at(made.id)), 404, "not_found");
  });

  const one = (registration: object) => ({ registrations: [registration] });
  test.each([
    ["/name", { name: undefined }],
    ["/url", { url: undefined }],
    ["/url", { url: "not a url" }],
    ["/url", { url: "ftp://example.com/" }],
    ["/url", { url: "https://user:pw@example.com/" }],
    ["/url", { url: "http://169.254.169.254/" }],
    ["/secretKey", { secretKey: "fifteen letters" }],
    ["/secretKey", { secretKey: " ".repeat(16) }],
    ["/secretKey", { secretKey: "\t\u3000\u2028\u00a0".repeat(4) }],
    ["/secretKey", { secretKey: "whsec_this is not base64" }],
    ["/registrations/0/event", one({ event: "" })],
    ["/registrations/0/delayMinutes", one({ event: "a", delayMinutes: -1 })],
    ["/registrations/0/delayMinutes", one({ event: "a", delayMinutes: 43_201 })],
    ["/registrations/0/triggerMode", one({ event: "a", triggerMode: "never" })],
    ["/registrations/0/filter", one({ event: "a", filter: "b" })],
    ["/registrations/0/filter", one({ event: "a", filter: [] })],
  ])("a fault at %s is reported: %j", async (pointer, fault) => {
    const body = { name: "x", url: "https://example.com/", ...fault };
    const faults = problemOf(await as.admin("POST", "/api/webhooks", body), 400, "validation_failed");
    expect(faults.map((fault) => fault.pointer)).toContain(pointer);
  });

  test("a new registration has a Location and is listed with the others, and a PATCH checks its values too", async () => {
    const webhook = await newWebhook(as.admin, { registrations: [{ event: "prospect.created" }] });
    const body = { event: "prospect.deleted", triggerMode: "manual", manualTriggerButtonText: "Go" } as const;
    const answer = await as.admin.POST("/api/webhooks/{id}/registrations", { ...at(webhook.id), body });
    const added = dataOf(answer, 201);
    expect(added).toEqual({ id: added.id, filter: null, delayMinutes: 0, ...body });
    const path = `/api/webhooks/${webhook.id}/registrations`;
    expect(answer.response.headers.get("location")).toBe(`${path}/${added.id}`);
    const list = dataOf(await as.admin.GET("/api/webhooks/{id}/registrations", at(webhook.id)));
    expect(list).toHaveLength(2);
    expect(list).toEqual(expect.arrayContaining([...webhook.registrations, added]));
    for (const [place, pointer, wrong] of [
      [`${path}/${added.id}`, "/delayMinutes", { delayMinutes: 43_201 }],
      [`${path}/${added.id}`, "/filter", { filter: [] }],
      [`/api/webhooks/${webhook.id}`, "/url", { url: "http://169.254.169.254/" }],
    ] as const) {
      const faults = problemOf(await as.admin("PATCH", place, wrong), 400, "validation_failed");
      expect(faults.map((fault) => fault.pointer)).toEqual([pointer]);
    }
  });

  test("a rotated secret is shown once, and a repeated rotation with the same idempotency key returns the same secret", async () => {
    const { id } = await newWebhook(as.admin, { secretKey: "the previous secret" });
    const rotated = dataOf(await as.admin.POST("/api/webhooks/{id}/rotate-secret", { ...at(id), body: {} }), 201);
    expect(rotated.secretKey).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    const chosen = { ...at(id), body: { secretKey: "a secret of my own" } };
    const { secretKey } = dataOf(await as.admin.POST("/api/webhooks/{id}/rotate-secret", chosen), 201);
    expect(secretKey).toBe(chosen.body.secretKey);
    expect(dataOf(await as.admin.GET("/api/webhooks/{id}", at(id))).secretKey).toBe("•••• own");
    expect(JSON.stringify(dataOf(await as.admin.GET("/api/webhooks")))).not.toContain("previous secret");

    const params = { path: { id }, header: { "Idempotency-Key": uniqueName() } };
    const again = () => as.admin.POST("/api/webhooks/{id}/rotate-secret", { params, body: {} });
    const [one, two] = [await again(), await again()];
    expect(one.response.headers.get("location")).toBe(`/api/webhooks/${id}`);
    expect(dataOf(two, 201)).toEqual(dataOf(one, 201));
  });

  test("a rotation keeps the form of the old secret, and a chosen secret sets the form", async () => {
    const { id } = await newWebhook(as.admin);
    const rotate = async (secretKey?: string): Promise<string> => {
      const chosen = { ...at(id), body: secretKey === undefined ? {} : { secretKey } };
      const answer = dataOf(await as.admin.POST("/api/webhooks/{id}/rotate-secret", chosen), 201);
      if (answer.secretKey.startsWith("whsec_")) expect(answer.standardWebhooksSecret).toBe(answer.secretKey);
      return answer.secretKey;
    };
    const uuid = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;
    expect(await rotate()).toMatch(uuid);
    await rotate("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    const standard = [await rotate(), await rotate()];
    // 24 random bytes have 32 characters in base64.
    for (const secret of standard) expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{32}$/);
    expect(new Set(standard).size).toBe(2);
    await rotate("a secret in plain text");
    expect(await rotate()).toMatch(uuid);
  });

  test("a sample of an unknown event is refused and nothing is sent; a repeated request sends one sample, which the log shows", async () => {
    const { id } = await newWebhook(as.admin);
    dataOf(await as.admin.POST("/api/webhooks/{id}/pause", at(id)));
    for (const event of ["prospect.changed", "toString", "", null, 1]) {
      const faults = problemOf(await as.admin("POST", `/api/webhooks/${id}/test`, { event }), 400, "validation_failed");
      expect(faults.map(({ pointer }) => pointer)).toEqual(["/event"]);
    }
    const log = async () => dataOf(await as.admin.GET("/api/webhooks/{id}/deliveries", at(id))).items;
    expect(await log()).toEqual([]);
    const params = { path: { id }, header: { "Idempotency-Key": uniqueName() } };
    const send = () => as.admin.POST("/api/webhooks/{id}/test", { params, body: { event: "territory.created" } });
    const { deliveryId } = dataOf(await send(), 202);
    expect(dataOf(await send(), 202).deliveryId).toBe(deliveryId);
    expect(await log()).toMatchObject([{ id: deliveryId, event: "territory.created", registrationId: null }]);
  });

  test("a registration with an unknown event or field is accepted, and every answer shows it with warnings", async () => {
    const registrations = [
      { event: "prospect.statusChanged" },
      { event: "prospect.created", filter: { "prospect.town": "Denver" } },
      { event: "prospect.created", filter: { "prospect.address.city": "Denver", "prospect.customFieldData.any": 1 } },
    ];
    const made = await newWebhook(as.admin, { registrations });
    const warned = [[expect.stringContaining("prospect.status_changed")], [expect.stringContaining("prospect.town")]];
    const shown = async () => dataOf(await as.admin.GET("/api/webhooks/{id}", at(made.id))).registrations;
    for (const answer of [made.registrations, await shown()]) {
      expect(answer.map(({ warnings }) => warnings)).toEqual([...warned, undefined]);
    }
    const params = { path: { id: made.id, registrationId: present(made.registrations[0]).id } };
    const body = { event: "prospect.created" };
    const mended = await as.admin.PATCH("/api/webhooks/{id}/registrations/{registrationId}", { params, body });
    expect(dataOf(mended)).not.toHaveProperty("warnings");
    expect((await shown()).map(({ warnings }) => warnings)).toEqual([undefined, warned[1], undefined]);
  });

  test("sixty concurrent requests create at most 40 webhooks and 50 registrations", async () => {
    const before = dataOf(await as.otherOwner.GET("/api/webhooks")).length;
    const body = { name: "x", url: "https://example.com/" };
    const answers = await Promise.all(Array.from({ length: 60 }, () => as.otherOwner.POST("/api/webhooks", { body })));
    const made = answers.flatMap(({ data }) => (data === undefined ? [] : [data.id]));
    const first = present(made[0]);
    expect(made).toHaveLength(limits.webhooksPerCompany - before);
    for (const refused of answers.filter(({ data }) => data === undefined)) problemOf(refused, 409, "conflict");

    const registration = { ...at(first), body: { event: "prospect.created" } };
    const registered = await Promise.all(
      Array.from({ length: 60 }, () => as.otherOwner.POST("/api/webhooks/{id}/registrations", registration)),
    );
    const most = limits.registrationsPerWebhook;
    expect(registered.filter((answer) => statusOf(answer) === 201)).toHaveLength(most);
    expect(registered.filter((answer) => statusOf(answer) === 409)).toHaveLength(60 - most);

    const deleted = await Promise.all(made.map((id) => as.otherOwner.DELETE("/api/webhooks/{id}", at(id))));
    expect(deleted.every((answer) => statusOf(answer) === 200)).toBe(true);
  });
});
