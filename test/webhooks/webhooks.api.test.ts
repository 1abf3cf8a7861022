/** Tests the endpoints of webhooks and registrations: secrets, rights, validation errors and limits. */
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, onTestFinished, test } from "vitest";
import type { NewRegistration } from "../../docs/client/api.ts";
import { at, send, tokenOf } from "../harness/client.ts";
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

  test.each([
    ["sixteen letters!", "••••ers!"],
    ["🔑🔒🔓🔏🔐🗝a1234567890", "••••7890"],
    ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "••••LaSw"],
  ])(
    "a chosen secret is stored unchanged, and the mask shows at most a quarter of it: %j",
    async (secretKey, masked) => {
      const made = await newWebhook(as.admin, { secretKey });
      expect(made.secretKey).toBe(secretKey);
      expect(dataOf(await as.admin.GET("/api/webhooks/{id}", at(made.id))).secretKey).toBe(masked);
    },
  );

  test("sales users get 403 whether or not the webhook exists, and another company gets 404", async () => {
    const made = await newWebhook(as.admin);
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
    ["/secretKey", { name: "x", url: "https://example.com/", secretKey: "fifteen letters" }],
    ["/secretKey", { name: "x", url: "https://example.com/", secretKey: " ".repeat(16) }],
    ["/secretKey", { name: "x", url: "https://example.com/", secretKey: "\t\u3000\u2028\u00a0".repeat(4) }],
    ["/secretKey", { name: "x", url: "https://example.com/", secretKey: "whsec_this is not base64" }],
    ["/registrations/0/event", { name: "x", url: "https://example.com/", registrations: [{ event: "" }] }],
    [
      "/registrations/0/delayMinutes",
      { name: "x", url: "https://example.com/", registrations: [{ event: "a", delayMinutes: -1 }] },
    ],
    [
      "/registrations/0/filter",
      { name: "x", url: "https://example.com/", registrations: [{ event: "a", filter: "b" }] },
    ],
  ])("a fault at %s is reported", async (pointer, body) => {
    const faults = problemOf(await as.admin("POST", "/api/webhooks", body), 400, "validation_failed");
    expect(faults.map((fault) => fault.pointer)).toContain(pointer);
  });

  test("registrations are added, listed and deleted", async () => {
    const registrations = [{ event: "prospect.created" }];
    const webhook = await newWebhook(as.admin, { registrations });
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

  test("a patch changes only the sent fields, and writes nothing if no value differs", async () => {
    const body = { name: "CRM", url: "https://example.com/hook", registrations: [{ event: "prospect.created" }] };
    const { standardWebhooksSecret: _, ...made } = await newWebhook(as.admin, body);
    const patch = async (sent: object) =>
      dataOf(await as.admin.PATCH("/api/webhooks/{id}", { ...at(made.id), body: sent }));
    const masked = { ...made, secretKey: `••••${made.secretKey.slice(-4)}` };
    expect(await patch({})).toEqual(masked);
    expect(await patch({ name: "CRM", status: "paused", secretKey: "mine", companyId: 1 })).toEqual(masked);
    const renamed = await patch({ name: "ERP" });
    expect(renamed).toEqual({ ...masked, name: "ERP", updatedAt: renamed.updatedAt });
    expect(renamed.updatedAt > made.updatedAt).toBe(true);
    const moved = await patch({ url: "https://example.com/other" });
    expect(moved).toMatchObject({ name: "ERP", url: "https://example.com/other" });
    expect(dataOf(await as.admin.GET("/api/webhooks/{id}", at(made.id)))).toEqual(moved);
    for (const [pointer, wrong] of [
      ["/name", { name: "" }],
      ["/name", { name: null }],
      ["/url", { url: "nonsense" }],
      ["/url", { url: "http://169.254.169.254/" }],
    ] as const) {
      const faults = problemOf(await as.admin("PATCH", `/api/webhooks/${made.id}`, wrong), 400, "validation_failed");
      expect(faults.map((fault) => fault.pointer)).toEqual([pointer]);
    }
    expect(dataOf(await as.admin.GET("/api/webhooks/{id}", at(made.id)))).toEqual(moved);
    await as.admin.DELETE("/api/webhooks/{id}", at(made.id));
    problemOf(await as.admin.PATCH("/api/webhooks/{id}", { ...at(made.id), body: {} }), 404, "not_found");
  });

  test("a single registration is read and changed", async () => {
    const registrations = [{ event: "prospect.created", filter: { "prospect.name": "x" } }, { event: "note.created" }];
    const webhook = await newWebhook(as.admin, { registrations });
    const [first, second] = [present(webhook.registrations[0]), present(webhook.registrations[1])];
    const one = (id: number) => ({ params: { path: { id: webhook.id, registrationId: id } } });
    const route = "/api/webhooks/{id}/registrations/{registrationId}";
    expect(dataOf(await as.admin.GET(route, one(first.id)))).toEqual(first);
    const patch = async (sent: object) => dataOf(await as.admin.PATCH(route, { ...one(first.id), body: sent }));
    expect(await patch({})).toEqual(first);
    expect(await patch({ delayMinutes: 5, id: 1 })).toEqual({ ...first, delayMinutes: 5 });
    expect(await patch({ filter: null, triggerMode: "manual", manualTriggerButtonText: "Go" })).toEqual({
      ...first,
      delayMinutes: 5,
      filter: null,
      triggerMode: "manual",
      manualTriggerButtonText: "Go",
    });
    expect(dataOf(await as.admin.GET(route, one(second.id)))).toEqual(second);
    const path = `/api/webhooks/${webhook.id}/registrations/${first.id}`;
    for (const [pointer, wrong] of [
      ["/event", { event: "" }],
      ["/delayMinutes", { delayMinutes: 43_201 }],
      ["/triggerMode", { triggerMode: "never" }],
      ["/filter", { filter: [] }],
    ] as const) {
      const faults = problemOf(await as.admin("PATCH", path, wrong), 400, "validation_failed");
      expect(faults.map((fault) => fault.pointer)).toEqual([pointer]);
    }
    problemOf(await as.otherOwner.GET(route, one(first.id)), 404, "not_found");
    problemOf(await as.otherOwner.PATCH(route, { ...one(first.id), body: {} }), 404, "not_found");
    await as.admin.DELETE(route, one(first.id));
    problemOf(await as.admin.GET(route, one(first.id)), 404, "not_found");
    problemOf(await as.admin.PATCH(route, { ...one(first.id), body: { delayMinutes: 1 } }), 404, "not_found");
  });

  test("a rotated secret is shown once, and a repeated rotation with the same idempotency key returns the same secret", async () => {
    const { id } = await newWebhook(as.admin, { secretKey: "the previous secret" });
    const rotated = dataOf(await as.admin.POST("/api/webhooks/{id}/rotate-secret", { ...at(id), body: {} }), 201);
    expect(rotated.secretKey).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    const chosen = { ...at(id), body: { secretKey: "a secret of my own" } };
    expect(dataOf(await as.admin.POST("/api/webhooks/{id}/rotate-secret", chosen), 201).secretKey).toBe(
      chosen.body.secretKey,
    );
    expect(dataOf(await as.admin.GET("/api/webhooks/{id}", at(id))).secretKey).toBe("•••• own");
    expect(JSON.stringify(dataOf(await as.admin.GET("/api/webhooks")))).not.toContain("previous secret");

    const headers = {
      Authorization: `Bearer ${await tokenOf(as.admin.email)}`,
      "Content-Type": "application/json",
      "Idempotency-Key": uniqueName(),
    };
    const again = () => send("POST", `/api/webhooks/${id}/rotate-secret`, { headers, body: "{}" });
    const [one, two] = [await again(), await again()];
    expect(one.status).toBe(201);
    expect(one.headers.get("location")).toBe(`/api/webhooks/${id}`);
    expect(two.body).toEqual(one.body);
    problemOf(await as.otherOwner.POST("/api/webhooks/{id}/rotate-secret", { ...at(id), body: {} }), 404, "not_found");
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
    const mended = await as.admin.PATCH("/api/webhooks/{id}/registrations/{registrationId}", {
      params,
      body: { event: "prospect.created" },
    });
    expect(dataOf(mended)).not.toHaveProperty("warnings");
    expect((await shown()).map(({ warnings }) => warnings)).toEqual([undefined, warned[1], undefined]);
  });

  test("the catalogue lists each event with the schema of its data", async () => {
    const types = dataOf(await as.admin.GET("/api/webhooks/event-types"));
    expect(types.map(({ event }) => event)).toContain("prospect.status_changed");
    const ajv = new Ajv2020({ strict: false });
    for (const { description, schema } of types) {
      expect(description).toMatch(/^A[ n].*\.$/);
      expect(ajv.validateSchema(schema)).toBe(true);
    }
  });

  test("sixty concurrent requests create at most 40 webhooks and 50 registrations", async () => {
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
